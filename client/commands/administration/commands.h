// The verbs `alias`, `catalog`, `doctor` and `snapshot`.
#ifndef ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_COMMANDS_H_
#define ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_COMMANDS_H_

#include "client/commands/shared/command.h"

namespace attendant {

// Adds the verb with its flags, help and action. `context` must outlive `app`.
void AddAliasCommands(CLI::App& app, Context& context);
void AddCatalogCommands(CLI::App& app, Context& context);
void AddDoctorCommand(CLI::App& app, Context& context);
void AddSnapshotCommands(CLI::App& app, Context& context);

// Add parts of `catalog`.
void AddCatalogCreateCommand(CLI::App& catalog, Context& context);
void AddCatalogUpdateCommand(CLI::App& catalog, Context& context);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ADMINISTRATION_COMMANDS_H_
