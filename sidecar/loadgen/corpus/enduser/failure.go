package enduser

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/api"
)

// unfit reports an answer without a question.
type unfit struct {
	cause   api.FollowupCause
	message string
}

func (u *unfit) Error() string { return u.message }

// statusOf returns the HTTP status of an error, 0 for an error without one.
func statusOf(err error) int {
	var answered *openai.APIError
	var refused *openai.RequestError
	switch {
	case errors.As(err, &answered):
		return answered.HTTPStatusCode
	case errors.As(err, &refused):
		return refused.HTTPStatusCode
	}
	return 0
}

// causeOf classifies the error of an attempt.
func causeOf(err error) api.FollowupCause {
	var answer *unfit
	var network net.Error
	status := statusOf(err)
	switch {
	case errors.As(err, &answer):
		return answer.cause
	case status == http.StatusTooManyRequests:
		return api.FollowupRateLimited
	case status >= 500:
		return api.FollowupHTTP5xx
	case status >= 400:
		return api.FollowupHTTP4xx
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return api.FollowupTimeout
	case errors.As(err, new(*url.Error)), errors.As(err, new(*net.OpError)):
		return api.FollowupConnect
	}
	return api.FollowupMalformed
}

// isTransient reports whether a retry may succeed. It cannot after a refusal of the request,
// and there is no time for one after the time limit.
func isTransient(err error) bool {
	switch causeOf(err) {
	case api.FollowupHTTP4xx, api.FollowupTimeout:
		return false
	}
	return true
}

// explain describes an error and its remedy in one line. It hides the key, which some servers
// repeat in their answers.
func (q *Questioner) explain(err error) string {
	text := err.Error()
	var syntax *json.SyntaxError
	switch status := statusOf(err); {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		text += "; set LOADGEN_FOLLOWUP_API_KEY or followup.api_key_file"
	case status == http.StatusNotFound:
		text += "; check followup.model and followup.url"
	case errors.Is(err, context.DeadlineExceeded):
		text = "no question within " + q.opts.Timeout.String() + " (followup.timeout)"
	case errors.Is(err, syscall.ECONNREFUSED):
		text = "connection refused; is the server running, and is followup.url right?"
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, new(*json.UnmarshalTypeError)):
		text = "not the answer of an OpenAI-compatible server (" + text + "); check followup.url"
	}
	if q.opts.APIKey != "" {
		text = strings.ReplaceAll(text, q.opts.APIKey, "(hidden)")
	}
	return clip(text, maxQuestion)
}
