// Package httpdtest has what a real Dynamo frontend answered to requests of each
// kind. The simulated cluster is held against it, and it against a real Dynamo.
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

// File is the path of the answers, from the module's folder.
const File = "sidecar/booth/httpd/httpdtest/frontend.json"

//go:embed frontend.json
var file []byte

// Exchange is one request, and what Dynamo 1.6.1 with mock workers answered to it.
type Exchange struct {
	Name        string          `json:"name"`
	Method      string          `json:"method,omitempty"` // "" is POST
	Path        string          `json:"path,omitempty"`   // "" is /v1/chat/completions
	ContentType string          `json:"content_type,omitempty"`
	Body        json.RawMessage `json:"body,omitempty"`
	Raw         string          `json:"raw,omitempty"` // a body that is no JSON

	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer,omitempty"` // nothing for a stream, and where there was no body

	// Ours is what the simulated cluster answers where that is another thing.
	Ours *Difference `json:"ours,omitempty"`
}

// Difference is where the simulated cluster answers otherwise than Dynamo, and why.
type Difference struct {
	Why     string `json:"why"`
	Status  int    `json:"status"`
	Message string `json:"message,omitempty"` // how that of an error begins
}

// Exchanges are all that are kept, in the order of the file.
func Exchanges() ([]Exchange, error) {
	var all []Exchange
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	return all, nil
}

// Encode writes exchanges as the file has them.
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

// Ask sends the request to the server at a URL, and gives what it answers. The body
// of a stream is read and left out.
func (e *Exchange) Ask(ctx context.Context, url string) (status int, answer []byte, err error) {
	body := e.Raw
	if len(e.Body) > 0 {
		body = string(e.Body)
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(e.Method, http.MethodPost), url+cmp.Or(e.Path, "/v1/chat/completions"), strings.NewReader(body))
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

// loose are the words that some messages of Dynamo begin with. What follows the
// first is its JSON parser's; behind the second, it says nothing and the simulated
// cluster says what is wrong.
var loose = []string{"Failed to deserialize the JSON body into the target type: ", "Invalid request"}

// Common is the part of an error's message that everybody who imitates Dynamo says.
func Common(message string) string {
	for _, words := range loose {
		if strings.HasPrefix(message, words) {
			return words
		}
	}
	return message
}

// Shape is a JSON document without its values: its members with their kinds, sorted,
// and the shapes of a list's first element. A document that is none is "no JSON".
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

func walk(path string, v any, tell func(path, kind string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			walk(path+"."+name, member, tell)
		}
	case []any:
		tell(path, "list")
		if len(v) > 0 {
			walk(path+"[]", v[0], tell)
		}
	default:
		tell(path, fmt.Sprintf("%T", v))
	}
}
