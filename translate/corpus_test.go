package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ezat.io/chat-completions/e2e/standin"
	"ezat.io/chat-completions/translate"
	"ezat.io/chat-completions/translate/cases"
)

// TestCorpus runs every case that the core can show. UPDATE=1 rewrites the
// expectations of those that differ; read the difference before it is committed.
func TestCorpus(t *testing.T) {
	all, err := cases.All()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range all {
		if !c.Runs(cases.Core) {
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) { runCase(t, c) })
	}
	if ran == 0 {
		t.Error("no case ran")
	}
}

// used has read the requests of other cases before: nothing of them may show.
var used translate.Parser

func runCase(t *testing.T, c *cases.Case) {
	outcome, err := atCore(new(translate.Parser), c, whole)
	if err != nil {
		t.Fatal(err)
	}
	if diffs := c.Compare(cases.Core, outcome); len(diffs) > 0 {
		if os.Getenv("UPDATE") == "" {
			t.Errorf("%s\n%s", c.Comment, strings.Join(diffs, "\n"))
			return
		}
		update(t, c, outcome)
	}
	strict(t, c, outcome)
	for _, d := range deliveries(c) {
		again, err := atCore(&used, c, d)
		if err != nil {
			t.Fatal(err)
		}
		if again.Status != outcome.Status || !bytes.Equal(again.Body, outcome.Body) || !bytes.Equal(again.Usage, outcome.Usage) {
			t.Errorf("%s: status %d, body\n%s\nrecord %s\nthe whole answer gives status %d, body\n%s\nrecord %s",
				d.Name, again.Status, again.Body, again.Usage, outcome.Status, outcome.Body, outcome.Usage)
		}
	}
}

// update rewrites the case's file from the outcome.
func update(t *testing.T, c *cases.Case, outcome cases.Outcome) {
	data, err := c.Update(outcome)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("cases", c.Name+".txtar"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log("updated")
}

// strict holds what would go up against the strict stand-in: it accepts all that the
// case's upstream accepts.
func strict(t *testing.T, c *cases.Case, outcome cases.Outcome) {
	for i, sent := range outcome.Upstream {
		if c.Calls[i].Answer.Status >= 400 || c.Request.Method == http.MethodGet {
			continue
		}
		header := http.Header{
			"Content-Type":      {"application/json"},
			"Anthropic-Version": {"2023-06-01"},
			"X-Api-Key":         {cases.Key},
		}
		if refusal := standin.Check(header, sent.Body, standinRules(c)...); refusal != nil && !c.Forgives(i, refusal.Status) {
			t.Errorf("the stand-in refuses what goes up: %v\n%s", refusal, sent.Body)
		}
	}
}

func standinRules(c *cases.Case) []standin.Rule {
	var rules []standin.Rule
	for _, name := range c.Relax {
		rules = append(rules, standin.Rule(name))
	}
	return rules
}

var whole = cases.Delivery{Name: "whole"}

// deliveries are the ways in which a streamed answer arrives; any other reaches the
// core in one piece.
func deliveries(c *cases.Case) []cases.Delivery {
	if len(c.Calls) == 0 || !isStream(c.Calls[0].Answer) {
		return []cases.Delivery{whole}
	}
	return c.Deliveries(c.Calls[0].Answer.Body)
}

func isStream(a cases.Answer) bool {
	contentType, _ := a.Header.Get("content-type")
	return a.Status == 200 && strings.HasPrefix(contentType, "text/event-stream")
}

// atCore is the core's level: it does with the core what the filter does, but for
// headers and paths.
func atCore(parser *translate.Parser, c *cases.Case, d cases.Delivery) (cases.Outcome, error) {
	cfg, err := readConfig(c.Config)
	if err != nil {
		return cases.Outcome{}, err
	}
	if c.Request.Method == http.MethodGet {
		return modelsAtCore(c, cfg)
	}
	parser.Images = cfg.imagePolicy()
	request, refusal := parser.Parse(c.Request.Body)
	if refusal != nil {
		return refused(refusal), nil
	}
	plan, refusal := translate.Decide(request, cfg.env(c))
	if refusal != nil {
		return refused(refusal), nil
	}
	downloads, err := download(c, plan, cfg)
	if err != nil {
		return cases.Outcome{}, err
	}
	sent := cases.Sent{Method: http.MethodPost}
	plan.Write(func(piece []byte) { sent.Body = append(sent.Body, piece...) })
	if plan.Session != "" {
		sent.Header = cases.Header{{"x-ezat-session", plan.Session}}
	}
	outcome := cases.Outcome{Upstream: []cases.Sent{sent}, Downloads: downloads}
	if len(c.Calls) == 0 {
		return outcome, nil // Compare says that the upstream was called
	}
	answer(&outcome, plan.Reply, c.Calls[0].Answer, cfg, d)
	return outcome, nil
}

// download gives the plan its images from the case's image servers. What the filter
// does about answers that are no image, this level cannot show.
func download(c *cases.Case, plan *translate.Plan, cfg config) ([]cases.Sent, error) {
	servers := c.PlayDownloads()
	var images []translate.Image
	for _, fetch := range plan.Fetches {
		url, fault := translate.ParseImageURL(fetch.URL, cfg.Images.AllowPrivate)
		if fault != "" {
			return nil, fmt.Errorf("the core asks for the download of %s, which is refused: %s", fetch.URL, fault)
		}
		scheme, _, _ := strings.Cut(url.String(), ":")
		answer := servers.Answer(cases.Sent{Method: http.MethodGet, Path: url.Path, Header: cases.Header{
			{"authority", url.Authority}, {"x-image-scheme", scheme},
		}})
		image := translate.Image{Type: translate.ImageType(answer.Body), Data: answer.Body}
		if answer.Status != http.StatusOK || image.Type == "" {
			return nil, fmt.Errorf("%s: this level cannot show status %d and type %q", url, answer.Status, image.Type)
		}
		images = append(images, image)
	}
	plan.Resolve(images)
	return servers.Sent(), nil
}

func refused(e *translate.Error) cases.Outcome {
	return cases.Outcome{Status: e.Status, Body: translate.AppendEnvelope(nil, e)}
}

// answer fills in what the client gets for the upstream's answer.
func answer(o *cases.Outcome, reply translate.Reply, up cases.Answer, cfg config, d cases.Delivery) {
	facts := translate.Answer{RequestID: cases.RequestID, Created: cases.Created}
	if up.Status != http.StatusOK {
		e := reply.UpstreamError(up.Status, up.Body)
		o.Status, o.Body = e.Status, translate.AppendEnvelope(nil, e)
		return
	}
	if !isStream(up) {
		body, record, e := reply.Answer(nil, up.Body, facts)
		if e != nil {
			o.Status, o.Body = e.Status, translate.AppendEnvelope(nil, e)
			return
		}
		o.Status, o.Body, o.Usage = http.StatusOK, body, record.Append(nil)
		return
	}
	stream := translate.NewStream(reply, facts, cfg.HoldHeaders)
	pieces := d.Pieces
	if pieces == nil {
		pieces = [][]byte{up.Body}
	}
	var body []byte
	for i, piece := range pieces {
		// The machine may not keep the piece: the host's buffer is used again.
		piece = slices.Clone(piece)
		body = stream.Feed(body, piece, i == len(pieces)-1 && !d.EndAlone)
		clear(piece)
	}
	if d.EndAlone || len(pieces) == 0 {
		body = stream.Feed(body, nil, true)
	}
	o.Status, o.Body = http.StatusOK, body
	if e := stream.Early(); e != nil {
		o.Status, o.Body = e.Status, translate.AppendEnvelope(nil, e)
	}
	record := stream.Record()
	o.Usage = record.Append(nil)
}

// modelsAtCore answers the model list and a single model from the case's pages.
func modelsAtCore(c *cases.Case, cfg config) (cases.Outcome, error) {
	models := cfg.models()
	outcome := cases.Outcome{Status: http.StatusOK}
	if c.Request.Path != "/openai/v1/models" {
		asked := strings.TrimPrefix(c.Request.Path, "/openai/v1/models/")
		asked, _, _ = strings.Cut(asked, "?")
		asked = strings.NewReplacer("%2F", "/", "%2f", "/").Replace(asked)
		outcome.Upstream = []cases.Sent{{Method: http.MethodGet}}
		body, e := translate.AppendModel(nil, c.Calls[0].Answer.Body, asked)
		if e != nil {
			outcome.Status, body = e.Status, translate.AppendEnvelope(nil, e)
		}
		outcome.Body = body
		return outcome, nil
	}
	var list translate.ModelList
	for i, call := range c.Calls {
		outcome.Upstream = append(outcome.Upstream, cases.Sent{Method: http.MethodGet})
		after, e := list.Add(call.Answer.Body)
		if e != nil {
			outcome.Status, outcome.Body = e.Status, translate.AppendEnvelope(nil, e)
			return outcome, nil
		}
		if wanted := i < len(c.Calls)-1; wanted != (after != "") {
			return outcome, fmt.Errorf("after page %d the cursor is %q, and the case has %d pages", i+1, after, len(c.Calls))
		}
	}
	outcome.Body = list.Append(nil, models)
	return outcome, nil
}

// config is the part of the plugin's configuration that reaches the core. The filter
// reads the real one, strictly.
type config struct {
	Upstream struct {
		Credentials string  `json:"credentials"`
		ModelPrefix *string `json:"model_prefix"`
	} `json:"upstream"`
	Models        modelConfigs `json:"models"`
	UnknownModels string       `json:"unknown_models"`
	HoldHeaders   bool         `json:"hold_headers"`
	Caching       bool         `json:"caching"`
	Images        struct {
		HTTPCluster  string `json:"http_cluster"`
		HTTPSCluster string `json:"https_cluster"`
		AllowPrivate bool   `json:"allow_private"`
	} `json:"images"`
}

func (c *config) imagePolicy() translate.ImagePolicy {
	return translate.ImagePolicy{HTTP: c.Images.HTTPCluster != "", HTTPS: c.Images.HTTPSCluster != "", Private: c.Images.AllowPrivate}
}

// modelConfigs are the configured models in the order of the configuration, which is
// that of the model list.
type modelConfigs []modelConfig

func (m *modelConfigs) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		entry := modelConfig{Name: name.(string)}
		if err := d.Decode(&entry); err != nil {
			return err
		}
		*m = append(*m, entry)
	}
	return nil
}

type modelConfig struct {
	Name            string    `json:"-"`
	Upstream        *string   `json:"upstream"`
	MaxOutputTokens *int      `json:"max_output_tokens"`
	Sampling        *bool     `json:"sampling"`
	Caching         *bool     `json:"caching"`
	Thinking        *bool     `json:"thinking"`
	Effort          *[]string `json:"effort"`
}

func readConfig(text []byte) (config, error) {
	cfg := config{HoldHeaders: true, Caching: true}
	cfg.Images.HTTPCluster, cfg.Images.HTTPSCluster = "image_http", "image_https"
	if text == nil {
		return cfg, nil
	}
	err := json.Unmarshal(text, &cfg)
	return cfg, err
}

func (c config) models() *translate.Models {
	prefix := "anthropic/"
	if c.Upstream.ModelPrefix != nil {
		prefix = *c.Upstream.ModelPrefix
	}
	var entries []translate.ModelEntry
	for _, m := range c.Models {
		entries = append(entries, translate.ModelEntry{
			Name: m.Name, Upstream: m.Upstream, MaxOutputTokens: m.MaxOutputTokens,
			Sampling: m.Sampling, Caching: m.Caching, Thinking: m.Thinking, Effort: m.Effort,
		})
	}
	return translate.NewModels(prefix, entries)
}

func (c config) env(kase *cases.Case) *translate.Env {
	cache, _ := kase.Request.Header.Get("x-ezat-cache")
	session, _ := kase.Request.Header.Get("x-ezat-session")
	return &translate.Env{
		Models:        c.models(),
		RefuseUnknown: c.UnknownModels == "refuse",
		AutoCache:     c.Caching && cache != "off",
		SessionHeader: session,
		GatewayKey:    c.Upstream.Credentials == "gateway",
	}
}
