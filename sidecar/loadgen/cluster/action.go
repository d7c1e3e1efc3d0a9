package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"kvbooth/sidecar/process"
)

var (
	_ Action = Program{}
	_ Action = Call{}
)

// maxAnswer is how much of a refusal's body an error quotes, in bytes.
const maxAnswer = 200

// placeholders replaces the names that stand for an arm in arguments, URLs and bodies.
func placeholders(a Arm) *strings.Replacer {
	return strings.NewReplacer("{arm}", a.State.Arm, "{url}", a.URL, "{mode}", string(a.State.Mode))
}

// Program is an [Action] that runs a program: its path and its arguments, in which {arm}, {url} and
// {mode} stand for the arm to switch to. The environment has the same in KVBOOTH_ARM, KVBOOTH_URL and
// KVBOOTH_MODE, and the former arm in KVBOOTH_FORMER_ARM.
type Program []string

// Switch runs the program to its end. What is in the program's group ends with ctx.
func (p Program) Switch(ctx context.Context, from, to Arm, output func(line string)) error {
	fill := placeholders(to)
	args := make([]string, len(p))
	for i, text := range p {
		args[i] = fill.Replace(text)
	}
	env := append(process.Environment(), "KVBOOTH_ARM="+to.State.Arm, "KVBOOTH_URL="+to.URL,
		"KVBOOTH_MODE="+string(to.State.Mode), "KVBOOTH_FORMER_ARM="+from.State.Arm)
	return process.Run(ctx, process.Command{Name: p[0], Path: args[0], Args: args[1:], Env: env}, output)
}

// Request is an HTTP request in whose URL, headers and body placeholders may stand.
type Request struct {
	Method  string            `json:"method,omitempty"` // empty: POST
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

// Call is an [Action] that makes one HTTP request, in which {arm}, {url} and {mode} stand for the arm
// to switch to. The client's credentials are sent with it.
type Call struct {
	Request Request
	Client  *http.Client // nil: one without credentials
}

// Switch sends the request and requires an answer with a status of 200 to 299.
func (c Call) Switch(ctx context.Context, _, to Arm, _ func(line string)) error {
	return c.Request.fill(placeholders(to)).send(ctx, c.Client)
}

// Uses reports whether a placeholder stands anywhere in the request.
func (r Request) Uses(placeholder string) bool {
	for _, text := range r.Headers {
		if strings.Contains(text, placeholder) {
			return true
		}
	}
	return strings.Contains(r.URL, placeholder) || strings.Contains(r.Body, placeholder)
}

// fill replaces the placeholders.
func (r Request) fill(with *strings.Replacer) Request {
	filled := Request{Method: r.Method, URL: with.Replace(r.URL), Body: with.Replace(r.Body)}
	for name, value := range r.Headers {
		if filled.Headers == nil {
			filled.Headers = map[string]string{}
		}
		filled.Headers[name] = with.Replace(value)
	}
	return filled
}

// send makes the request, and gives an error for an answer that refuses it.
func (r Request) send(ctx context.Context, client *http.Client) error {
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	if r.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return plain(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode < http.StatusOK || res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s answered %s: %s", method, req.URL.Redacted(), res.Status,
			strings.ToValidUTF8(strings.TrimSpace(string(text)), "�"))
	}
	return err
}
