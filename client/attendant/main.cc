#include "client/attendant/command_line.h"

int main(int argc, char** argv) {
  return attendant::RunCommandLine(argc, argv);
}
