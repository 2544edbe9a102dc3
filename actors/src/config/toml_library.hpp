#pragma once

// toml++ with the limits that this project sets before including it: no configuration nests deeper,
// and each level of nesting is a level of recursion in the library.

#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>
