// The verbs that attend: `attend`, `contextualize` and `rank`.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_COMMANDS_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_COMMANDS_H_

#include "client/commands/shared/command.h"

namespace attendant {

// Adds the verb with its flags, help and action. `context` must outlive `app`.
void AddAttendCommand(CLI::App& app, Context& context);
void AddContextualizeCommand(CLI::App& app, Context& context);
void AddRankCommand(CLI::App& app, Context& context);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_COMMANDS_H_
