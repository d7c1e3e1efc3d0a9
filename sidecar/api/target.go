package api

import (
	"net/url"
	"strconv"
	"strings"
)

// ChatPath is what a chat completion is asked for, below the path of a target's API.
const ChatPath = "/chat/completions"

// ParseTarget checks a target's URL and gives that of its API. A path is that of the API, with or without [ChatPath];
// without a path it is /v1. A query is kept for every request to the API. The error is a [FieldError].
func ParseTarget(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.User != nil || u.Fragment != "" || !isPort(u.Port()) {
		return nil, &FieldError{
			Field: "target.url", Value: strconv.Quote(s),
			Allowed: "http:// or https:// with a host and an optional port, path and query, such as http://127.0.0.1:8000",
		}
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

// TargetRoot is the address of a target with this API, without /v1 and without a query: where /health and /metrics are.
func TargetRoot(of *url.URL) *url.URL {
	u := *of
	u.RawQuery = ""
	trimPath(&u, "/v1")
	return &u
}

// trimPath takes slashes and a suffix off a path, which keeps its escapes.
func trimPath(u *url.URL, suffix string) {
	u.RawPath = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.EscapedPath(), "/"), suffix), "/")
	u.Path, _ = url.PathUnescape(u.RawPath) // a part of what url.Parse has unescaped
	if u.RawPath == u.Path {
		u.RawPath = ""
	}
}
