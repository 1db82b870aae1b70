package main

import (
	"strconv"
	"strings"

	"ezat.io/chat-completions/translate"
)

// modelsHeaders sends the request for the model list, or for one model, up.
func (x *exchange) modelsHeaders() Action {
	path := x.pagePath("")
	if x.route.endpoint == oneModel {
		// A copy: the path is a part of the client's headers, which must not be kept.
		name := strings.Clone(x.route.model)
		x.route.model, x.reply.Model = name, name
		if !isModelName(name) {
			return x.refuse(x.unknownModel(), nil)
		}
		model, known := x.plugin.models.Lookup(name)
		if !known && x.plugin.config.refuseUnknown || !isModelName(model.Upstream) {
			return x.refuse(x.unknownModel(), nil)
		}
		path = x.plugin.config.modelsPath + "/" + encodePath(model.Upstream)
	}
	x.reply.GatewayKey = x.plugin.config.credentials == gatewayKey
	if x.route.endpoint == modelList {
		x.keepForPages()
	}
	e := x.upstreamHeaders(path)
	e.set(timeoutHeader, wholeAnswerTimeout)
	if e.remove(dropsUpstream); e.err != nil {
		return x.breakDown("request headers", e.err)
	}
	x.request, x.sentUpstream = requestBodyless, true
	return Continue
}

// keepForPages keeps what further pages of a list are asked for with: copies,
// because the headers themselves must not be kept.
func (x *exchange) keepForPages() {
	x.authority = x.plugin.config.authority
	if x.authority == "" {
		x.authority = strings.Clone(lookup(x.requestHeaders, ":authority"))
	}
	x.pageKey = strings.Clone(x.key)
}

// unknownModel is the contract's row 404.
func (x *exchange) unknownModel() *translate.Error {
	return x.reply.UpstreamError(404, nil)
}

// pagePath is the path of one page of the upstream's list. after is the core's
// cursor, fit for a query.
func (x *exchange) pagePath(after string) string {
	path := x.plugin.config.modelsPath + "?limit=" + strconv.Itoa(modelPageEntries)
	if after != "" {
		path += "&after_id=" + after
	}
	return path
}

func (x *exchange) finishModel(body []byte) Action {
	out, e := translate.AppendModel(x.plugin.takeScratch(), body, x.route.model)
	defer func() { x.plugin.giveScratch(out) }()
	if e != nil {
		return x.finishFault(e)
	}
	return x.finish(200, out, translate.Record{})
}

// addPage adds one page of the list, and either asks for the next one or
// answers. The core bounds the pages.
func (x *exchange) addPage(body []byte) Action {
	after, e := x.list.Add(body)
	if e == nil && !x.fits() {
		e = translate.BadUpstream()
	}
	if e != nil {
		return x.finishFault(e)
	}
	if after == "" {
		out := x.list.Append(x.plugin.takeScratch(), x.plugin.models)
		defer func() { x.plugin.giveScratch(out) }()
		return x.finish(200, out, translate.Record{})
	}
	return x.fetchPage(after)
}

// fetchPage asks for the page after a model, with a request of our own. The
// answer waits meanwhile.
func (x *exchange) fetchPage(after string) Action {
	c := &x.plugin.config
	cluster := c.cluster
	if cluster == "" {
		cluster, _ = x.host.Property("xds", "cluster_name")
	}
	headers := [][2]string{
		{":method", "GET"},
		{":path", x.pagePath(after)},
		{":authority", x.authority},
		{"anthropic-version", c.version},
		{"accept-encoding", "identity"},
	}
	if name, value := x.credentialHeader(x.pageKey); name != "" {
		headers = append(headers, [2]string{name, value})
	}
	if err := x.host.Call(cluster, headers, modelPageTimeoutMs, x.pageArrived); err != nil {
		x.host.Log(Error, "models: the host refused the callout for a further page: "+err.Error())
		return x.finishFault(translate.BadUpstream())
	}
	x.response = responsePaging
	return Pause
}

// pageArrived goes on with the list, from the callout's callback.
func (x *exchange) pageArrived(result CallResult) {
	if x.response != responsePaging && len(x.owed) == 0 || x.takePage(result) == Pause {
		return
	}
	if err := x.host.ResumeResponse(); err != nil {
		x.host.Log(Error, "models: the host would not resume the response: "+err.Error())
		x.reset()
	}
}

func (x *exchange) takePage(result CallResult) (action Action) {
	defer x.leave(&action, x.enter(phaseAnswerBody))
	if x.response != responsePaging {
		return x.rest(0) // it has failed meanwhile
	}
	x.status = result.Status
	switch {
	case result.Status == 0:
		// No connection, no answer in time: as Envoy's own reply would be.
		return x.finishFault(x.reply.UpstreamError(503, nil))
	case result.Status != 200 && result.Size > errorBodyBytesMax:
		return x.finishError(nil)
	case result.Size > answerBodyBytesMax:
		return x.finishFault(translate.BadUpstream())
	}
	body, err := x.host.ReadBody(CalloutBody, result.Size)
	if err != nil {
		return x.breakDown("models: page", err)
	}
	defer x.collectAfter(result.Size, spentOn(result.Size))
	defer x.host.ReleaseBody(body)
	if result.Status == 200 {
		return x.addPage(body)
	}
	return x.finishError(body)
}
