//go:build wasip1 && !trap

package main

// trap does nothing: see abi_trap.go.
func trap() {}
