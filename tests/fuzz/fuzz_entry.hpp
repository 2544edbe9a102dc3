#pragma once

// What a fuzz target defines; who calls it is libFuzzer or random_inputs.cpp.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Good inputs of the entry, which random changes start from.
std::vector<std::string> fuzz_samples();

// The name is libFuzzer's.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
