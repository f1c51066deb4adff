// The ways in which a call of Laminate can fail.
#pragma once

#include <stdexcept>
#include <string>

namespace laminate {

/// Bad input (model, schedule, machine file, picture, tensor): thrown where it enters, exit code 3.
/// The message says where, what was found and what was expected; lower case, one line, no final
/// period:
///   net.onnx: node "conv3": operator NonMaxSuppression is not supported; supported: Conv, Relu,
///   ...
class InputError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// What was asked for does not fit, into the memory that was given or that there is, or into what
/// code can address: exit code 4. The message says what would.
class InfeasibleError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A wrong command line: exit code 2.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace laminate
