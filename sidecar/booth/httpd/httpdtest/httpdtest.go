// Package httpdtest contains answers of a real Dynamo frontend to requests of each kind. Tests compare the simulated
// cluster with them, and them with a real Dynamo.
package httpdtest

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// File is the path of the answers, relative to the module's root.
const File = "sidecar/booth/httpd/httpdtest/frontend.json"

//go:embed frontend.json
var file []byte

// Exchange is a request with the answer of Dynamo 1.6.1 with mock workers.
type Exchange struct {
	Name        string          `json:"name"`
	Method      string          `json:"method,omitempty"` // "" means POST
	Path        string          `json:"path,omitempty"`   // "" means /v1/chat/completions
	ContentType string          `json:"content_type,omitempty"`
	Body        json.RawMessage `json:"body,omitempty"`
	Raw         string          `json:"raw,omitempty"` // a body that is not JSON

	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer,omitempty"` // empty for a stream and for a response without a body

	// Ours is the answer of the simulated cluster, if it differs.
	Ours *Difference `json:"ours,omitempty"`
}

// Difference describes an answer of the simulated cluster that differs from Dynamo's.
type Difference struct {
	Why     string `json:"why"`
	Status  int    `json:"status"`
	Message string `json:"message,omitempty"` // beginning of an error's message
}

// Exchanges returns all exchanges in the order of the file.
func Exchanges() ([]Exchange, error) {
	var all []Exchange
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	return all, nil
}

// Encode returns exchanges in the format of the file.
func Encode(all []Exchange) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, e := range all {
		line := new(bytes.Buffer)
		encoder := json.NewEncoder(line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(e); err != nil {
			return nil, err
		}
		b.WriteString("  " + strings.TrimSpace(line.String()))
		if i < len(all)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	return b.Bytes(), nil
}

// Ask sends the request to the server at a URL and returns its response. The body of a stream is read and discarded.
func (e *Exchange) Ask(ctx context.Context, url string) (status int, answer []byte, err error) {
	body := e.Raw
	if len(e.Body) > 0 {
		body = string(e.Body)
	}
	target := url + cmp.Or(e.Path, "/v1/chat/completions")
	req, err := http.NewRequestWithContext(ctx, cmp.Or(e.Method, http.MethodPost), target, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", cmp.Or(e.ContentType, "application/json"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		answer = nil
	}
	return res.StatusCode, bytes.TrimSpace(answer), err
}

// Problem is the body of an error.
type Problem struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    int    `json:"code"`
}

// commonPrefixes are the beginnings of messages that continue differently in Dynamo and in the simulated cluster. After
// the first, Dynamo has the message of its JSON parser. After the second, Dynamo has nothing, and the simulated cluster
// has the cause.
var commonPrefixes = []string{"Failed to deserialize the JSON body into the target type: ", "Invalid request"}

// Common returns the part of an error's message that Dynamo and the simulated cluster have in common.
func Common(message string) string {
	for _, words := range commonPrefixes {
		if strings.HasPrefix(message, words) {
			return words
		}
	}
	return message
}

// Shape returns the structure of a JSON document without its values: its members with their types, sorted, and the
// structure of each list's first element. For anything else it returns "no JSON".
func Shape(document []byte) string {
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		return "no JSON"
	}
	var lines []string
	walk("", v, func(path, kind string) { lines = append(lines, path+" "+kind) })
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func walk(path string, v any, visit func(path, kind string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			walk(path+"."+name, member, visit)
		}
	case []any:
		visit(path, "list")
		if len(v) > 0 {
			walk(path+"[]", v[0], visit)
		}
	default:
		visit(path, fmt.Sprintf("%T", v))
	}
}
