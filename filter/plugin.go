package main

import (
	"math/rand/v2"

	"ezat.io/chat-completions/translate"
)

// version is set by the linker: -X main.version=….
var version = "dev"

// plugin is what all streams of one VM share: the configuration, the model
// table, the bound on images, and buffers that are used again. A VM runs one
// callback at a time.
type plugin struct {
	config  config
	models  *translate.Models
	images  *imageMemory // of the VM, shared with its other plugins
	ledger  *ledger      // of the VM as well
	parser  translate.Parser
	scratch []byte
	line    []byte // where a usage line is written
	ticking bool   // the host calls tick

	usageRefused bool // the host has refused a usage line, and the log says so

	refusals map[string]*Metric
}

// startPlugin reads the configuration. It returns nil when the plugin must not
// start; every fault is in the log then.
func startPlugin(host Host, configuration []byte) *plugin {
	host.Log(Info, "ezat chat-completions "+version)
	c, faults := parseConfig(configuration)
	for _, fault := range faults {
		host.Log(Error, "configuration refused: "+fault)
	}
	if len(faults) > 0 {
		return nil
	}
	if c.credentials == gatewayKey {
		host.Log(Warn, "upstream.credentials is gateway: whoever reaches the listener spends the gateway's key; "+
			"put client authentication in front")
	}
	return &plugin{
		config: c,
		models: translate.NewModels(c.modelPrefix, c.models),
		images: newImageMemory(),
		ledger: &ledger{bytesMax: unfinishedBytesMax},

		refusals: map[string]*Metric{},
		parser: translate.Parser{
			Images: translate.ImagePolicy{
				HTTP:    c.images.httpCluster != "",
				HTTPS:   c.images.httpsCluster != "",
				Private: c.images.allowPrivate,
			},
			Key: [2]uint64{rand.Uint64(), rand.Uint64()}, // from the host's random_get, by way of Go's runtime
		},
	}
}

// newExchange begins the life of one stream. id tells it from the other
// streams of the VM.
func (p *plugin) newExchange(host Host, id uint32) *exchange {
	return &exchange{plugin: p, host: host, id: id}
}

// beginTicks has the host call tick, because a request waits for its downloads. A
// host that will not is asked once.
func (p *plugin) beginTicks(host Host) {
	p.ticking = true
	if err := host.Tick(imageTickMs); err != nil {
		host.Log(Warn, "images: the host will not tick, so the time that a request waits for its downloads has no bound: "+err.Error())
	}
}

// tick ends the requests that have waited too long, and itself once none waits.
func (p *plugin) tick(host Host) {
	late, waiting := p.images.late(p, host.Now())
	for _, all := range late {
		all.giveUp()
	}
	if waiting > 0 {
		return
	}
	p.ticking = false
	if err := host.Tick(0); err != nil {
		host.Log(Warn, "images: the host would not stop to tick: "+err.Error())
	}
}

// takeScratch lends the output buffer, empty. A callback that runs inside
// another one, while the buffer is lent, gets memory of its own.
func (p *plugin) takeScratch() []byte {
	b := p.scratch[:0]
	p.scratch = nil
	return b
}

// giveScratch takes the buffer back for the next answer, unless it has become
// so large that keeping it would cost more than it saves.
func (p *plugin) giveScratch(b []byte) {
	if cap(b) <= scratchKeepBytesMax {
		p.scratch = b
		return
	}
	p.ledger.made(cap(b))
}
