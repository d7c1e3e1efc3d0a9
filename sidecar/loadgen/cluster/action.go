package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"kvbooth/sidecar/process"
)

var (
	_ Action = Program{}
	_ Action = Call{}
)

// maxAnswer is the number of bytes of a refusal's body or Location that an error quotes.
const maxAnswer = 200

// placeholders are pairs of a name that stands for a value in arguments, URLs, headers and bodies, and its value.
type placeholders []string

// placeholdersOf returns those of an arm.
func placeholdersOf(a Arm) placeholders {
	return placeholders{"{arm}", a.State.Arm, "{url}", a.URL, "{mode}", string(a.State.Mode)}
}

// fill returns a text with its placeholders replaced. A nil escape leaves the values as they are.
func (p placeholders) fill(text string, escape func(string) string) string {
	pairs := slices.Clone(p)
	for i := 1; i < len(pairs) && escape != nil; i += 2 {
		pairs[i] = escape(pairs[i])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// urlParts matches a URL up to its host, which may be {url}, its path and the rest.
var urlParts = regexp.MustCompile(`(?s)^([^:/?]*(?:://[^/?]*)?)([^?]*)(.*)$`)

// fillURL returns a URL with its placeholders replaced. Values in the path and behind it are escaped.
func (p placeholders) fillURL(address string) string {
	parts := urlParts.FindStringSubmatch(address)
	return p.fill(parts[1], nil) + p.fill(parts[2], url.PathEscape) + p.fill(parts[3], url.QueryEscape)
}

// Program is an [Action] that runs a program. It holds the path and the arguments, in which {arm}, {url}
// and {mode} are replaced by those of the arm to switch to. The variables KVBOOTH_ARM, KVBOOTH_URL and
// KVBOOTH_MODE have the same values, and KVBOOTH_FORMER_ARM names the former arm.
type Program []string

// Switch runs the program to its end. If ctx ends first, the program's process group is stopped.
func (p Program) Switch(ctx context.Context, from, to Arm, output func(line string)) error {
	values := placeholdersOf(to)
	args := make([]string, len(p))
	for i, text := range p {
		args[i] = values.fill(text, nil)
	}
	env := append(process.Environment(), "KVBOOTH_ARM="+to.State.Arm, "KVBOOTH_URL="+to.URL,
		"KVBOOTH_MODE="+string(to.State.Mode), "KVBOOTH_FORMER_ARM="+from.State.Arm)
	return process.Run(ctx, process.Command{Name: p[0], Path: args[0], Args: args[1:], Env: env}, output)
}

// Request is an HTTP request. Its URL, headers and body may contain placeholders.
type Request struct {
	Method  string            `json:"method,omitempty"` // empty: POST
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

// Sender sends requests, which may go to other hosts than turns do.
type Sender struct {
	Client  *http.Client      // adds no headers; nil uses a client without credentials
	Headers map[string]string // for requests to Targets, by canonical name
	Targets []string          // URLs with the scheme, host and port of the requests that get Headers
}

// Call is an [Action] that makes one HTTP request. {arm}, {url} and {mode}
// in it are replaced by those of the arm to switch to, escaped in the path and the query of the URL.
type Call struct {
	Request Request
	Sender  Sender
}

// Switch sends the request and requires an answer with a status of 200 to 299.
func (c Call) Switch(ctx context.Context, _, to Arm, _ func(line string)) error {
	return c.Sender.send(ctx, c.Request.fill(placeholdersOf(to)))
}

// Uses reports whether the request contains a placeholder.
func (r Request) Uses(placeholder string) bool {
	for _, text := range r.Headers {
		if strings.Contains(text, placeholder) {
			return true
		}
	}
	return strings.Contains(r.URL, placeholder) || strings.Contains(r.Body, placeholder)
}

// fill returns the request with its placeholders replaced.
func (r Request) fill(values placeholders) Request {
	filled := Request{Method: r.Method, URL: values.fillURL(r.URL), Body: values.fill(r.Body, nil)}
	for name, value := range r.Headers {
		if filled.Headers == nil {
			filled.Headers = map[string]string{}
		}
		filled.Headers[name] = values.fill(value, nil)
	}
	return filled
}

// send makes a request. It does not follow a redirect. A status outside 200 to 299 is an error with the redirect's
// address or the beginning of the body.
func (s Sender) send(ctx context.Context, r Request) error {
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
	s.addHeaders(req, r.Headers)
	once := http.Client{}
	if s.Client != nil {
		once = *s.Client
	}
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := once.Do(req)
	if err != nil {
		return readable(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode >= http.StatusOK && res.StatusCode < http.StatusMultipleChoices {
		return err
	}
	answered := fmt.Sprintf("%s %s answered %s", method, req.URL.Redacted(), res.Status)
	if to, err := res.Location(); err == nil && res.StatusCode < http.StatusBadRequest {
		address := to.Redacted()
		address = address[:min(len(address), maxAnswer)]
		return fmt.Errorf("%s with the Location %s; redirects are not followed", answered, address)
	}
	return fmt.Errorf("%s: %s", answered, strings.ToValidUTF8(strings.TrimSpace(string(text)), "�"))
}

// addHeaders sets the headers of the targets, if the request goes to one of them, and those of the request itself.
func (s Sender) addHeaders(req *http.Request, own map[string]string) {
	toTarget := func(target string) bool {
		u, err := url.Parse(target)
		return err == nil && origin(u) == origin(req.URL)
	}
	headers := map[string]string{}
	if slices.ContainsFunc(s.Targets, toTarget) {
		maps.Copy(headers, s.Headers)
	}
	for name, value := range own {
		headers[http.CanonicalHeaderKey(name)] = value
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	req.Host = req.Header.Get("Host") // "" stands for that of the URL
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// origin returns the scheme, host and port of a URL.
func origin(u *url.URL) string {
	host := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPorts[u.Scheme]))
	return u.Scheme + "://" + strings.ToLower(host)
}
