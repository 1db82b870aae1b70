// This file is empty. With it the compiler accepts functions without a body:
// abi_exports.go reaches the SDK's callbacks by name.
