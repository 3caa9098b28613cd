// The verb `items`: stores, reads, changes, deletes and exports items.
#ifndef ATTENDANT_CLIENT_COMMANDS_ITEMS_COMMANDS_H_
#define ATTENDANT_CLIENT_COMMANDS_ITEMS_COMMANDS_H_

#include "client/commands/shared/command.h"

namespace attendant {

// Adds the verb with its flags, help and action. `context` must outlive `app`.
void AddItemsCommands(CLI::App& app, Context& context);

// Add its subcommands.
void AddImportCommand(CLI::App& items, Context& context);
void AddItemsDeleteCommand(CLI::App& items, Context& context);
void AddItemsExportCommand(CLI::App& items, Context& context);
void AddItemsUpdateCommand(CLI::App& items, Context& context);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ITEMS_COMMANDS_H_
