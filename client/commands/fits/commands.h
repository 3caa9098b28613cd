// The verb `fit`: learns models from events, texts and choices.
#ifndef ATTENDANT_CLIENT_COMMANDS_FITS_COMMANDS_H_
#define ATTENDANT_CLIENT_COMMANDS_FITS_COMMANDS_H_

#include "client/commands/shared/command.h"

namespace attendant {

// Adds the verb with its flags, help and action. `context` must outlive `app`.
void AddFitCommands(CLI::App& app, Context& context);

// Add its subcommands.
void AddFitLsiCommand(CLI::App& fit, Context& context);
void AddFitTextCommand(CLI::App& fit, Context& context);
void AddFitTemperatureCommand(CLI::App& fit, Context& context);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_FITS_COMMANDS_H_
