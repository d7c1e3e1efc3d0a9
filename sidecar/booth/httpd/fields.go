package httpd

import "strings"

// treatment is the effect of a field of a chat request: honored, checked without effect, or ignored.
type treatment string

const (
	honored treatment = "honored"
	checked treatment = "checked"
	ignored treatment = "ignored"
)

// field is a field of a chat request that Dynamo's frontend accepts. A request with any other field is refused.
// docs/simulated-api.md lists the fields, which a test checks.
type field struct {
	name        string
	treat       treatment
	description string // effect, or what is checked; "" for an ignored field
}

// ignoredFields returns fields by their names, which are separated by blanks.
func ignoredFields(names string) (all []field) {
	for name := range strings.FieldsSeq(names) {
		all = append(all, field{name: name, treat: ignored})
	}
	return all
}

// fields lists the fields that the frontend of Dynamo 1.6.1 accepts, with their accepted values.
var fields = append([]field{
	{"model", honored, "The id that `/v1/models` lists; any other gets a 404."},
	{"messages", honored, "All of OpenAI's roles; content a string or a list of `text` parts, no images, audio or video."},
	{"stream", honored, "An event per worker iteration; with speculation it has several tokens."},
	{"stream_options", honored, "`include_usage` adds the token counts before `[DONE]`."},
	{"max_tokens", honored, "1 to 1,048,576, within the worker's cache. Up to 1,980 it is about the answer's length; " +
		"else answers have 900 tokens on average, at most 4,096."},
	{"max_completion_tokens", honored, "As `max_tokens`, and takes precedence."},
	{"min_tokens", honored, "Stop conditions before that are ignored."},
	{"ignore_eos", honored, "Exactly as many tokens as the limit, or 4,096; stop sequences are ignored, as in Dynamo."},
	{"stop", honored, "A string, or up to 32. The answer ends before the first match, whose last token counts."},
	{"include_stop_str_in_output", honored, "The answer includes the stop sequence."},
	{"seed", honored, "64 bits; equal prompts and seeds get equal answers. At temperature 0, nothing is left to chance."},
	{"nvext", honored, "See below."},

	{"n", checked, "1, where Dynamo accepts up to 128"},
	{"temperature", checked, "0 to 2"},
	{"top_p", checked, "above 0, up to 1"},
	{"min_p", checked, "0 to 1"},
	{"top_k", checked, "-1 or more"},
	{"frequency_penalty", checked, "-2 to 2"},
	{"presence_penalty", checked, "-2 to 2"},
	{"repetition_penalty", checked, "above 0, up to 2"},
	{"top_logprobs", checked, "0 to 20; no probabilities are returned"},
}, ignoredFields(`
	add_generation_prompt allowed_token_ids audio cache_salt chat_template_args chat_template_kwargs
	continue_final_message detokenize function_call functions guided_choice guided_decoding_backend
	guided_grammar guided_json guided_regex guided_whitespace_pattern logit_bias logprobs
	media_io_kwargs metadata mm_processor_kwargs modalities parallel_tool_calls prediction
	prompt_cache_key prompt_logprobs reasoning_effort response_format return_tokens_as_token_ids
	service_tier skip_special_tokens stop_token_ids store thinking thinking_token_budget tool_choice
	tools user web_search_options
`)...)

// extensions lists the accepted fields of nvext. Any other field is refused, including those that would change routing
// or serving in Dynamo and are not simulated.
var extensions = append([]field{
	{"extra_fields", honored, "returns `worker_id` and `timing` in `nvext`"},
	{"annotations", honored, "`token_ids` sends the prompt's token IDs before the first chunk"},
	{"backend_instance_id", honored, "the worker to serve the request: an instance ID of `/health`"},
	{"min_tokens", honored, "as the top-level field, which takes precedence; Dynamo 1.6.1 refuses it here"},
	{"ignore_eos", honored, "as above; Dynamo before 1.3 accepted it here"},
}, ignoredFields(`agent_hints greed_sampling request_timestamp_ms`)...)
