package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A target's path is that of its API, in any form that users copy.
func TestParseTarget(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:8000":      "http://127.0.0.1:8000/v1",
		"http://127.0.0.1:8000/":     "http://127.0.0.1:8000/v1",
		"http://127.0.0.1:8000/v1":   "http://127.0.0.1:8000/v1",
		"http://127.0.0.1:8000/v1/":  "http://127.0.0.1:8000/v1",
		"https://gateway/llama/v1":   "https://gateway/llama/v1",
		"https://gateway/llama":      "https://gateway/llama",
		"http://host/v1beta/openai/": "http://host/v1beta/openai",
		"http://host/v1?":            "http://host/v1",
		"http://host?key=1":          "http://host/v1?key=1",

		"http://host/v1beta/openai/chat/completions":                   "http://host/v1beta/openai",
		"http://host/openai/deployments/x?api-version=1":               "http://host/openai/deployments/x?api-version=1",
		"http://host/deployments/x/chat/completions/?api-version=2024": "http://host/deployments/x?api-version=2024",

		"http://host/v1/models":        "",
		"http://host/a/v1/completions": "",
		"https://host/models":          "https://host/models",

		"http://[::1]:8000":           "http://[::1]:8000/v1",
		"":                            "",
		"127.0.0.1:8000":              "",
		"localhost":                   "",
		"ftp://host":                  "",
		"unix:///socket":              "",
		"http://":                     "",
		"http://:8000":                "",
		"http://host:0":               "",
		"http://host:70000":           "",
		"http://host:port":            "",
		"http://user:password@host":   "",
		"http://host/v1#x":            "",
		"http://host/\r\nX-Evil: 1":   "",
		"http://ho st":                "",
		"http://host/a b/v1":          "http://host/a%20b/v1",
		"http://host/%0d%0aX-Evil/v1": "http://host/%0d%0aX-Evil/v1",

		"http://host/models/a%2Fb/chat/completions": "http://host/models/a%2Fb",
		"http://host/a%2Fchat/completions?v=1":      "http://host/a%2Fchat/completions?v=1",
	} {
		u, err := ParseTarget(in)
		var field *FieldError
		switch {
		case want == "" && !(errors.As(err, &field) && field.Field == "target.url" &&
			field.Value == fmt.Sprintf("%q", in) && strings.Contains(field.Allowed, "http://")):
			t.Errorf("%q: got %v, %v; want a field error", in, u, err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q: got %v, %v; want %s", in, u, err, want)
		}
	}
}

// The pages of a target that are not its API's are below its path without /v1, and get no query.
func TestTargetRoot(t *testing.T) {
	for in, want := range map[string]string{
		"http://host":                                          "http://host",
		"http://host/v1/chat/completions":                      "http://host",
		"http://host/v1/chat/completions/?key=1":               "http://host",
		"http://host/a%2Fb/v1/chat/completions":                "http://host/a%2Fb",
		"http://host/openai/deployments/x?api-version=2024-10": "http://host/openai/deployments/x",
	} {
		u, err := ParseTarget(in)
		if err != nil || TargetRoot(u).String() != want {
			t.Errorf("%q: got %v, %v; want %s", in, u, err, want)
		}
	}
}
