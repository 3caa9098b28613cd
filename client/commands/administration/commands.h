// Aliases, catalogs and snapshots, and whether a machine serves well.
#ifndef ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_COMMANDS_H_
#define ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_COMMANDS_H_

#include "client/commands/shared/command.h"

namespace attendant {

// Each adds a verb with its flags, help and action. `context` must outlive
// `app`.
void AddAliasCommands(CLI::App& app, Context& context);
void AddCatalogCommands(CLI::App& app, Context& context);
void AddDoctorCommand(CLI::App& app, Context& context);
void AddSnapshotCommands(CLI::App& app, Context& context);

// Parts of `catalog`.
void AddCatalogCreateCommand(CLI::App& catalog, Context& context);
void AddCatalogUpdateCommand(CLI::App& catalog, Context& context);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_COMMANDS_H_
