package standin

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// Bounds of a page of the model list.
const (
	pageUsual = 20
	pageMax   = 1000
)

// listModels serves GET /v1/models. pagesOf bounds a page further, 0 does
// not.
func listModels(query url.Values, pagesOf int) (*Response, *APIError) {
	limit := pageUsual
	if raw := query.Get("limit"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 1 || n > pageMax {
			return nil, invalid("limit: Input should be between 1 and %d", pageMax)
		}
		limit = n
	}
	if pagesOf > 0 {
		limit = min(limit, pagesOf)
	}
	after, before := query.Get("after_id"), query.Get("before_id")
	if after != "" && before != "" {
		return nil, invalid("before_id: cannot be used together with after_id")
	}
	from, to := 0, len(models)
	for _, cursor := range []string{after, before} {
		i := slices.IndexFunc(models, func(m model) bool { return m.id == cursor })
		switch {
		case cursor == "":
		case i < 0:
			return nil, invalid("after_id: Model '%s' not found", cursor)
		case cursor == after:
			from = i + 1
		default:
			to = i
		}
	}
	more := to-from > limit
	if before != "" {
		from = max(0, to-limit)
	}
	return JSON(http.StatusOK, appendPage(models[from:min(to, from+limit)], more)), nil
}

func appendPage(page []model, more bool) []byte {
	dst := []byte(`{"data":[`)
	for i := range page {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = page[i].append(dst)
	}
	dst = append(dst, `],"has_more":`...)
	dst = strconv.AppendBool(dst, more)
	if len(page) == 0 {
		return append(dst, `,"first_id":null,"last_id":null}`...)
	}
	dst = appendString(append(dst, `,"first_id":`...), page[0].id)
	dst = appendString(append(dst, `,"last_id":`...), page[len(page)-1].id)
	return append(dst, '}')
}

// oneModel serves GET /v1/models/{id}.
func oneModel(id string) (*Response, *APIError) {
	m := findModel(id)
	if m == nil {
		return nil, notFound("model: " + id)
	}
	return JSON(http.StatusOK, m.append(nil)), nil
}

// append appends the model as ModelInfo.
func (m *model) append(dst []byte) []byte {
	dst = appendString(append(dst, `{"type":"model","id":`...), m.id)
	dst = appendString(append(dst, `,"display_name":`...), m.displayName)
	dst = appendString(append(dst, `,"created_at":`...), m.created)
	dst = appendString(append(dst, `,"lifecycle":`...), m.lifecycle)
	dst = appendString(append(dst, `,"line":`...), m.line)
	dst = strconv.AppendInt(append(dst, `,"max_input_tokens":`...), int64(m.context), 10)
	dst = strconv.AppendInt(append(dst, `,"max_tokens":`...), int64(m.maxTokens), 10)
	deprecated := `null`
	if m.lifecycle == "deprecated" {
		deprecated = `"2026-09-30T00:00:00Z"`
	}
	dst = append(dst, `,"deprecated_at":`+deprecated+`,"retires_at":null,"capabilities":{`...)
	for _, name := range []string{"batch", "citations", "code_execution", "image_input", "pdf_input", "structured_outputs"} {
		dst = append(appendSupported(dst, name, true), ',')
	}
	dst = append(dst, `"context_management":{"supported":true,`...)
	for _, name := range []string{"clear_thinking_20251015", "clear_tool_uses_20250919", "compact_20260112"} {
		dst = append(appendSupported(dst, name, true), ',')
	}
	dst = append(dst[:len(dst)-1], `},"effort":{"supported":`...)
	dst = strconv.AppendBool(dst, len(m.effort) > 0)
	for _, name := range levelsAll {
		dst = appendSupported(append(dst, ','), name, slices.Contains(m.effort, name))
	}
	dst = append(dst, `},"thinking":{"supported":true,"types":{`...)
	for _, name := range []string{"adaptive", "between_tools", "disabled", "enabled"} {
		dst = append(appendSupported(dst, name, slices.Contains(m.thinking, name)), ',')
	}
	return append(dst[:len(dst)-1], `}},"server_tools":{"supported":false,"code_execution":{"supported":false},"web_search":{"supported":false}}}}`...)
}

func appendSupported(dst []byte, name string, supported bool) []byte {
	dst = append(append(append(dst, '"'), name...), `":{"supported":`...)
	return append(strconv.AppendBool(dst, supported), '}')
}
