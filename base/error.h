// The ways in which a call to Laminate can fail.
#pragma once

#include <stdexcept>
#include <string>

namespace laminate {

/// Bad input (model, schedule, machine file, picture, tensor), thrown where it enters; exit code 3.
/// The message says where, what was found and what was expected, on one line, in lower case,
/// without a final period:
///   net.onnx: node "conv3": operator NonMaxSuppression is not supported; supported: Conv, Relu,
///   ...
class InputError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The request does not fit the memory that was given or that exists, or what code can address;
/// exit code 4. The message says what would fit.
class InfeasibleError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A wrong command line; exit code 2.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace laminate
