// Package hostile attacks the module in real Envoy behind the shipped envoy.yaml: hostile
// clients, hostile upstreams, and what they might leave behind. The attacks are tests, so
// that anybody can repeat them:
//
//	go test -count=1 -v ./e2e/hostile                           # all of them, in two or three minutes
//	go test -count=1 -v -run TestAttacks/bodies ./e2e/hostile   # one class
//	make soak SOAK=10m                                          # mixed load and attacks for a time of choice
//
// Beside each attack a neighbour asks small questions and must get the right answers,
// all of them. Behind it nothing may be under way any more, the VM must be the one that
// was there before, and Envoy's log must be silent. No test looks at how long something
// takes, but for the bound of every wait.
package hostile
