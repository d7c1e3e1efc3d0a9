package api

import (
	"net/url"
	"strconv"
	"strings"
)

// ChatPath is the path of chat completions, relative to that of a target's API.
const ChatPath = "/chat/completions"

// ParseTarget parses the URL of a target and returns the URL of its API. The path may include [ChatPath]. An empty path
// means /v1. The query is kept and belongs to every request to the API. The error is a [*FieldError].
func ParseTarget(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.User != nil || u.Fragment != "" || !isPort(u.Port()) {
		return nil, Refuse("target.url", strconv.Quote(s),
			"http:// or https:// with a host and an optional port, path and query, such as http://127.0.0.1:8000")
	}
	u.ForceQuery = false
	trimPath(u, ChatPath)
	if u.Path == "" {
		u.Path = "/v1"
	}
	for _, other := range []string{"/completions", "/models", "/responses", "/embeddings", "/messages", "/chat"} {
		if strings.HasSuffix(u.Path, "/v1"+other) {
			trimPath(u, other)
			return nil, Refuse("target.url", strconv.Quote(s), "the path of the API, "+u.String()+", or of its chat completions")
		}
	}
	return u, nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && n > 0
}

// TargetRoot returns the URL of an API without /v1 and without its query. The target serves /health and /metrics below
// it.
func TargetRoot(target *url.URL) *url.URL {
	u := *target
	u.RawQuery = ""
	trimPath(&u, "/v1")
	return &u
}

// trimPath removes a suffix and the slashes around it from the end of a path. Escapes in the path are kept.
func trimPath(u *url.URL, suffix string) {
	u.RawPath = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.EscapedPath(), "/"), suffix), "/")
	u.Path, _ = url.PathUnescape(u.RawPath) // a part of what url.Parse has unescaped
	if u.RawPath == u.Path {
		u.RawPath = ""
	}
}
