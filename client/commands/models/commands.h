// The verb `model`.
#ifndef ATTENDANT_CLIENT_COMMANDS_MODELS_COMMANDS_H_
#define ATTENDANT_CLIENT_COMMANDS_MODELS_COMMANDS_H_

#include "client/commands/shared/command.h"

namespace attendant {

// Adds the verb with its flags, help and action. `context` must outlive `app`.
void AddModelCommands(CLI::App& app, Context& context);

// Add parts of `model`.
void AddModelFromLsiCommand(CLI::App& model, Context& context);
void AddModelImportCommand(CLI::App& model, Context& context);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_MODELS_COMMANDS_H_
