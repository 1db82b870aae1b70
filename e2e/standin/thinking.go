package standin

import "slices"

// budgetMin is the smallest thinking.budget_tokens.
const budgetMin = 1024

// thinks tells whether the model thinks on this request.
func (r *request) thinks() bool {
	switch r.body.at("thinking").text("type") {
	case "adaptive", "enabled":
		return true
	case "disabled", "between_tools":
		return false
	}
	return r.model.thinks
}

// checkThinking applies the model's table to thinking and effort.
func (r *request) checkThinking() *APIError {
	thinking := r.body.at("thinking")
	kind := thinking.text("type")
	if kind != "" && !slices.Contains(r.model.thinking, kind) {
		return r.refuseThinking(kind)
	}
	if budget, ok := thinking.at("budget_tokens").integer(); ok {
		if limit, _ := r.body.at("max_tokens").integer(); budget >= limit {
			return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
		}
	}
	effort := r.body.at("output_config").text("effort")
	if effort == "" {
		return nil
	}
	if len(r.model.effort) == 0 {
		return invalid("This model does not support the effort parameter.")
	}
	if !slices.Contains(r.model.effort, effort) {
		return invalid("output_config.effort: '%s' is not supported for this model. Supported values are: %s",
			effort, quoteList(r.model.effort, ", "))
	}
	off := kind == "disabled" || kind == "between_tools"
	if off && r.model.offUpTo != "" && slices.Index(levelsAll, effort) > slices.Index(levelsAll, r.model.offUpTo) {
		return invalid("\"thinking.type.%s\" is not supported with \"output_config.effort\" above \"%s\" for this model.", kind, r.model.offUpTo)
	}
	return nil
}

func (r *request) refuseThinking(kind string) *APIError {
	switch {
	case kind == "adaptive":
		return invalid("adaptive thinking is not supported on this model")
	case kind == "disabled" && slices.Contains(r.model.thinking, "between_tools"):
		return invalid("\"thinking.type.disabled\" is not supported for this model. Use \"thinking.type.between_tools\" to control thinking behavior.")
	}
	return invalid("\"thinking.type.%s\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.", kind)
}
