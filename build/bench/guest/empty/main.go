// Command empty is the least that a proxy starts: how late it is live with it is
// what Go itself costs.
package main

// main is empty: a module is a library.
func main() {}
