package main

import (
	"bytes"
	"fmt"
	"strconv"
	"text/template"

	"ezat.io/chat-completions/harness/internal/play"
)

// config writes Envoy's configuration for a case.
func (s *stage) config(guest string, c *play.Case) []byte {
	var out bytes.Buffer
	policy := "FAIL_RELOAD"
	if c.Options.FailClosed {
		policy = "FAIL_CLOSED"
	}
	err := bootstrap.Execute(&out, map[string]any{
		"Port": s.port, "Up": port(s.up), "Callout": port(s.callout),
		"Guest": guest, "Script": strconv.Quote(c.Script),
		"Options": c.Options, "Policy": policy,
		"Timeout": float64(c.Options.RouteTimeoutMs) / 1000,
		"Idle":    float64(c.Options.IdleTimeoutMs) / 1000,
	})
	if err != nil {
		panic(fmt.Sprintf("template: %v", err)) // our own template, executed on our own values
	}
	return out.Bytes()
}

// A quoted Go string of printable text is a valid double-quoted YAML scalar.
var bootstrap = template.Must(template.New("bootstrap").Parse(`
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: {{.Port}}}}
    {{with .Options.BufferLimitBytes}}per_connection_buffer_limit_bytes: {{.}}{{end}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: main
          codec_type: HTTP1
          http_protocol_options: {enable_trailers: true}
          generate_request_id: false
          server_header_transformation: PASS_THROUGH
          stream_idle_timeout: {{.Idle}}s
          delayed_close_timeout: 0s
          access_log:
          - name: envoy.access_loggers.stdout
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
              log_format: {text_format_source: {inline_string: "access %REQ(x-stream)% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %FILTER_STATE(wasm.usage:PLAIN)%\n"}}
          route_config:
            validate_clusters: false
            virtual_hosts:
            - name: any
              domains: ["*"]
              routes:
              - {match: {prefix: /none}, direct_response: {status: 404}}
              - {match: {prefix: /dead}, route: {cluster: dead, timeout: {{.Timeout}}s}}
              - {match: {prefix: /absent}, route: {cluster: absent}}
              - {match: {prefix: /empty}, route: {cluster: empty}}
              - {match: {prefix: /moved}, route: {cluster: up, prefix_rewrite: /other}, name: moved}
              - {match: {safe_regex: {regex: "/[^!].*"}}, route: {cluster: up, timeout: {{.Timeout}}s}, name: all}
          http_filters:
          - name: wasm
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm
              config:
                name: p
                root_id: r
                failure_policy: {{.Policy}}
                {{if not .Options.NoStopIteration}}allow_on_headers_stop_iteration: true{{end}}
                vm_config:
                  vm_id: v
                  runtime: envoy.wasm.runtime.v8
                  code: {local: {filename: "{{.Guest}}"}}
                  environment_variables: {key_values: {COLOUR: green}}
                configuration:
                  "@type": type.googleapis.com/google.protobuf.StringValue
                  value: {{.Script}}
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
              suppress_envoy_headers: true
  clusters:
  - name: up
    connect_timeout: 5s
    typed_extension_protocol_options: &trailers
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http_protocol_options: {enable_trailers: true}}
    load_assignment:
      cluster_name: up
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: {{.Up}}}}}}]}]
  - name: callout
    connect_timeout: 5s
    load_assignment:
      cluster_name: callout
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: {{.Callout}}}}}}]}]
  - name: dead
    connect_timeout: 5s
    load_assignment:
      cluster_name: dead
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]
  - name: empty
    connect_timeout: 5s
    load_assignment: {cluster_name: empty}
`))
