package chat

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kvbooth/sidecar/api"
)

// Error describes a failed request: its class, and a message that says what happened and what to do.
type Error struct {
	Class      api.ErrorClass
	Status     int           // HTTP status, 0 without a response
	RetryAfter time.Duration // of a 429 or 503; 0 if it has none
	Code       string        // status or word of an error inside an answer, as sent by the server
	Unreached  bool          // no connection to the server was made
	Message    string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// status returns the response's status, or the status inside an error that was sent with status 200.
func (e *Error) status() int {
	if code, err := strconv.Atoi(e.Code); err == nil && e.Status == http.StatusOK && code >= http.StatusBadRequest &&
		code < 600 {
		return code
	}
	return e.Status
}

// Final reports whether the same request would fail again: the server refuses the request itself, the key or the model.
func (e *Error) Final() bool {
	switch s := e.status(); s {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return false
	default:
		return s >= http.StatusBadRequest && s < http.StatusInternalServerError && s != clientClosed
	}
}

// clientClosed is nginx's status for a request whose client closed the connection.
const clientClosed = 499

// overloaded is the status with which Dynamo's router sheds load.
const overloaded = 529

// isRefusal reports whether the server refuses the request itself, and not its key, path or model.
func (e *Error) isRefusal() bool {
	switch e.status() {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusGone, http.StatusUnavailableForLegalReasons:
		return false
	}
	return e.Final()
}

// noList reports whether a request for the models failed because the server has no list of them.
func (e *Error) noList() bool {
	return e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed
}

// connectError explains why no connection was made.
func connectError(addr string, err error) *Error {
	why, todo := err.Error(), "check target.url"
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		why, todo = "the proxy blocks it ("+clip(op.Err.Error())+")", "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
	case errors.Is(err, syscall.ECONNREFUSED):
		why, todo = "connection refused", "is the server running, and is its address right (target.url)?"
	case errors.As(err, &dns):
		why, todo = "its name cannot be resolved ("+dns.Err+")", "check the host name in target.url"
	case errors.As(err, &unknown):
		why, todo = "its certificate is signed by an unknown authority", "give the authority's certificate as "+
			"target.ca_file"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		why, todo = "its certificate is expired or not valid yet", "renew it, and check the clocks of both machines"
	case errors.As(err, &name):
		why, todo = otherHost(name)
	case errors.As(err, &record):
		why, todo = "it does not speak TLS", "use http:// in target.url"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		why, todo = "no answer in time", "check the network, or raise target.connect_timeout"
	case errors.Is(err, syscall.EMFILE):
		why, todo = "too many open files", "raise the limit with ulimit -n"
	}
	return &Error{Class: api.ErrorConnect, Unreached: true, Message: fmt.Sprintf("cannot connect to %s: %s; "+
		"%s", addr, why, todo)}
}

// otherHost explains a certificate for other hosts.
func otherHost(err x509.HostnameError) (why, todo string) {
	names := slices.Clone(err.Certificate.DNSNames)
	for _, ip := range err.Certificate.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) > 1:
		return "its certificate is for other hosts (" + clip(strings.Join(names, ", ")) + ")", "use one of these in " +
			"target.url"
	case len(names) == 1:
		return "its certificate is for a different host name (" + clip(names[0]) + ")", "use that name in target.url"
	}
	return "its certificate names no host", "issue one with " + clip(err.Host) + " as a subject alternative name; a " +
		"common name does not count"
}

// answerError explains why a connection delivered no response.
func answerError(err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Class: api.ErrorTimeout, Message: "the server accepts connections but does not answer in time; " +
			"it is overloaded or hung, or target.connect_timeout is too short"}
	}
	// A server that sends something other than HTTP and closes the connection has answered. Text that begins with "H"
	// is HTTP that was cut off. net/http has no error value for this, only the message.
	if _, line, ok := strings.Cut(err.Error(), "malformed HTTP response "); ok && !strings.HasPrefix(line, `"H`) {
		return notHTTP(err)
	}
	why := clip(err.Error())
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		why = "the connection ended before the response did"
	}
	return &Error{Class: api.ErrorConnect, Message: "the server did not answer: " + why + "; check the server's log " +
		"and target.url"}
}

// notHTTP explains a response with an invalid head.
func notHTTP(err error) *Error {
	return unreadable("it is not HTTP/1.1, or its headers are longer than 64 KiB (" + clip(err.Error()) + ")")
}

// requested is the path and model of a request, for messages.
type requested struct{ path, model string }

// aboutModel matches the word model in a server's message, but not in a path.
var aboutModel = regexp.MustCompile(`(?i)(^|[^/\w])models?(_|\b)`)

// names reports whether a text contains the name as a word.
func names(text, name string) bool {
	if name == "" {
		return false
	}
	return regexp.MustCompile(`(^|[^/\w])` + regexp.QuoteMeta(name) + `($|\W)`).MatchString(text)
}

// statusError explains an HTTP status other than 200.
func statusError(status int, header http.Header, body string, asked requested) *Error {
	e := &Error{Status: status, RetryAfter: retryAfter(header)}
	detail := ""
	if body != "" {
		detail = ": " + body
	}
	switch {
	case status == http.StatusTooManyRequests:
		e.Class = api.ErrorRateLimited
		e.Message = fmt.Sprintf("the server rate-limits requests (429%s)%s; lower concurrency or "+
			"target_rps", wait(e.RetryAfter), detail)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Class = api.ErrorHTTP4xx
		e.Message = fmt.Sprintf("the server refused access (%d)%s; check the API key (LOADGEN_TARGET_API_KEY or "+
			"target.api_key_file) and target.headers", status, detail)
	case status == http.StatusNotFound && (aboutModel.MatchString(body) || names(body, asked.model)):
		e.Class = api.ErrorHTTP4xx
		e.Message = fmt.Sprintf("the server has no model %q (404)%s; set target.model to a model that it "+
			"serves", asked.model, detail)
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusGone:
		e.Class = api.ErrorHTTP4xx
		e.Message = fmt.Sprintf("the server answered %d at %s%s; check the path of "+
			"target.url", status, clip(asked.path), detail)
		if asked.model != "" {
			e.Message += fmt.Sprintf(", and that it serves the model %q", asked.model)
		}
	case status == overloaded:
		e.Class = api.ErrorBusy
		e.Message = fmt.Sprintf("the server is over its limit of load (529%s)%s; lower concurrency, or raise the "+
			"limit, such as --active-prefill-tokens-threshold of Dynamo", wait(e.RetryAfter), detail)
	case status >= 500:
		e.Class = api.ErrorHTTP5xx
		e.Message = fmt.Sprintf("the server failed (%d%s)%s; check the server's "+
			"log", status, wait(e.RetryAfter), detail)
	case status >= 400:
		e.Class = api.ErrorHTTP4xx
		e.Message = fmt.Sprintf("the server rejected the request (%d)%s", status, detail)
	default:
		e.Class = api.ErrorMalformed
		e.Message = fmt.Sprintf("the server answered %d where 200 was expected; is target.url the address of the API "+
			"itself?", status)
	}
	return e
}

func wait(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(", retry after %s", d)
}

// retryAfter reads the milliseconds of the headers that OpenAI and Azure send, else the seconds or the date of
// Retry-After (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	for _, header := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"X-Ms-Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		n, err := strconv.ParseFloat(strings.TrimSpace(h.Get(header.name)), 64)
		if d := n * float64(header.unit); err == nil && d > 0 && d < float64(24*time.Hour) {
			return time.Duration(d)
		}
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return max(0, time.Until(at).Round(time.Second))
	}
	return 0
}

// excerpt shortens a body for a message to one line of at most 200 bytes. Of a JSON error it keeps the message.
func excerpt(body []byte) string {
	if c, err := decodeChunk(body); err == nil && c.errMessage != "" {
		return clip(c.errMessage)
	}
	return clip(string(body))
}

// clip shortens s to one printable line of at most 200 bytes.
func clip(s string) string {
	s = s[:min(len(s), 2000)] // an event may have megabytes
	s = api.Printable(strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " "))
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
