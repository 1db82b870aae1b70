// Command yardstick times gjson.ValidBytes. It is built as Go builds it, with no
// treatment behind: the budgets are relative to what a plain filter would pay.
package main

// main is empty: a module is a library.
func main() {}
