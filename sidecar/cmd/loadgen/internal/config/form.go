package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/report"
)

// form is the syntax of a text. Read returns it in its canonical spelling.
type form struct {
	allowed string
	read    func(string) (string, error)
}

var errForm = errors.New("not of the form")

// allowedTarget says what the URL of a target may be.
const allowedTarget = "an http:// or https:// URL with a host, without user or fragment, such as http://127.0.0.1:8000"

var forms = map[string]form{
	"line": {fmt.Sprintf("one line of at most %d characters", api.MaxLine), checked(isLine)},
	"path": {"a path", checked(isPath)},
	"url":  {"an http:// or https:// URL with a host, without user, query or fragment", readURL},
	"page": {"an http:// or https:// URL with a host, without user, query or fragment, " +
		"or " + cluster.NoTarget, readPage},
	"target": {allowedTarget, readTarget},
	"header": {"NAME=VALUE, NAME=file:PATH or NAME=env:VARIABLE, with the name of an HTTP header; a value " +
		"with a comma comes from a file or a variable", header(chat.OwnHeaders)},
	"label": {"NAME=VALUE, with a name of letters, digits, dots, dashes and underscores and a value of at most 200 " +
		"characters in one line, such as commit=3f2c1a0", checked(regexp.MustCompile(`^[\w.-]{1,100}=[^\x00-\x1f]{1,200}$`).MatchString)},
	"result_name": {
		"a name of letters, digits, spaces and . _ + -, of at most 100 characters",
		checked(regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}$`).MatchString),
	},
	"header_name": {"the name of an HTTP header", readHeaderName},
	"body": {"a JSON object without the fields that other settings or the load generator itself set; stream_options " +
		"may have any but include_usage: false", readBody},
	"address":  {"an IP address or localhost with a port, such as 127.0.0.1:8088", checked(isAddress)},
	"nats":     {"a nats:// or tls:// URL with a host and a port, such as nats://127.0.0.1:4222", readNATS},
	"host":     {"a host name or an IP address, without a port", readHost},
	"origin":   {"an http:// or https:// URL with a host and an optional port only", readOrigin},
	"arm_name": {api.AllowedArm, checked(api.IsArmName)},
	"method":   {"a method of HTTP, such as POST", checked(chat.HeaderName.MatchString)},
	"request_header": {
		"the name of an HTTP header other than " + strings.Join(forbiddenInRequest, ", ") + ", and a value",
		header(forbiddenInRequest),
	},
	"text": {"a text", checked(func(string) bool { return true })},
	"arm_url": {
		"an http:// or https:// URL with a host, in which {arm}, {url} and {mode} may stand",
		func(s string) (string, error) { return s, checkTemplate("", s, armPlaceholders) },
	},
	"endpoint":     {"MODE=URL, such as kv=http://kv:8000 or kv/eagle3=http://kv:8000", readEndpoint},
	"output":       {allowedOutput, checked(isOutput)},
	"offer":        {allowedMode, checked(isOffer)},
	"way":          {allowedMode + ", or the name of an arm", checked(isWay)},
	"recorded_way": {allowedMode + "; unknown; or the name of an arm", checked(isRecordedWay)},
}

const allowedMode = "a mode or mode/speculation, such as kv or kv/eagle3"

// checked returns a reader of texts that are canonical as they are.
func checked(allowed func(string) bool) func(string) (string, error) {
	return func(s string) (string, error) {
		if !allowed(s) {
			return "", errForm
		}
		return s, nil
	}
}

func isLine(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= api.MaxLine && !strings.ContainsFunc(s, unicode.IsControl)
}

func isPath(s string) bool { return len(s) <= 4096 && !strings.ContainsFunc(s, unicode.IsControl) }

// parseURL parses a URL of one of the schemes with a host, without user, query or fragment. The error is [errPort] or
// [errForm].
func parseURL(s string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || !slices.Contains(schemes, u.Scheme) || u.Opaque != "" || !isHost(u.Hostname()) ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#") {
		return nil, errForm
	}
	if !isPort(u.Port()) {
		return nil, errPort
	}
	return u, nil
}

// errPort is the error of a URL with too large a port.
var errPort = errors.New("a port above 65535")

// allowedURL adds the range of ports to what is allowed, if the port is at fault.
func allowedURL(allowed string, err error) string {
	if errors.Is(err, errPort) {
		return allowed + "; a port is at most 65535"
	}
	return allowed
}

const hiddenURL = "a URL with a user or password"

// shownURL hides a URL with a user or password.
func shownURL(s string) string {
	if strings.Contains(s, "@") {
		return hiddenURL
	}
	return s
}

func readURL(s string) (string, error) {
	u, err := parseURL(s, "http", "https")
	if err != nil {
		return "", err
	}
	return strings.TrimRight(u.String(), "/"), nil
}

func readPage(s string) (string, error) {
	if s == cluster.NoTarget {
		return s, nil
	}
	return readURL(s)
}

func readNATS(s string) (string, error) {
	u, err := parseURL(s, "nats", "tls")
	if err != nil || u.Port() == "" || strings.Trim(u.Path, "/") != "" {
		return "", errForm
	}
	return u.Scheme + "://" + u.Host, nil
}

// readTarget removes the optional parts of a target's path: that of chat completions, and a /v1 that is all of it.
func readTarget(s string) (string, error) {
	address, query, _ := strings.Cut(s, "?")
	address, err := readURL(address)
	if err != nil {
		return "", err
	}
	if strings.Contains(query, "#") {
		return "", errForm
	}
	if _, err := url.ParseQuery(query); err != nil {
		return "", errForm
	}
	u, err := api.ParseTarget(address)
	if err != nil {
		return s, nil //nolint:nilerr // checkTargets reports the right path
	}
	u.RawQuery = query
	if u.Path == "/v1" {
		u.Path, u.RawPath = "", ""
	}
	return u.String(), nil
}

func readHeaderName(s string) (string, error) {
	if !chat.HeaderName.MatchString(s) {
		return "", errForm
	}
	return http.CanonicalHeaderKey(s), nil
}

// forbiddenInRequest are the headers that a request of switch.http and cold.http cannot set: its URL has the host.
var forbiddenInRequest = append([]string{"Host"}, chat.WireHeaders...)

// header returns a reader of NAME=VALUE.
func header(forbidden []string) func(string) (string, error) {
	return func(s string) (string, error) {
		name, value, found := strings.Cut(s, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !found || value == "" || !chat.HeaderName.MatchString(name) ||
			slices.Contains(forbidden, http.CanonicalHeaderKey(name)) {
			return "", errForm
		}
		return name + "=" + value, nil
	}
}

// readBody returns a JSON object with its fields in order.
func readBody(s string) (string, error) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(s), &fields); err != nil || fields == nil {
		return "", errForm
	}
	for _, name := range chat.OwnFields {
		if v, ok := fields[name]; ok && (name != "stream_options" || !isStreamOptions(v)) {
			return "", errForm
		}
	}
	canonical, err := json.Marshal(fields)
	return string(canonical), err
}

// isStreamOptions accepts options of the stream that leave the load generator its usage.
func isStreamOptions(v any) bool {
	options, isObject := v.(map[string]any)
	usage, given := options["include_usage"]
	return isObject && (!given || usage == true)
}

func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || port == "" || !isPort(port) {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err == nil || host == "localhost" || host == ""
}

func readHost(s string) (string, error) {
	if !isHost(s) {
		return "", errForm
	}
	return strings.ToLower(s), nil
}

// isWay accepts a mode or the name of an arm. Which arms there are is checked later.
func isWay(s string) bool {
	return api.IsArmName(s) && s != string(api.ModeUnknown) || isOffer(s)
}

func isRecordedWay(s string) bool { return api.IsArmName(s) || isRecordedMode(s) }

func isOffer(s string) bool { return isRecordedMode(s) && ParseMode(s).Mode != api.ModeUnknown }

// isRecordedMode accepts the mode in which a result was measured, which may be unknown.
func isRecordedMode(s string) bool {
	mode, speculation, found := strings.Cut(s, "/")
	return slices.Contains(api.Modes, api.Mode(mode)) &&
		(!found || slices.Contains(api.Speculations, api.Speculation(speculation)))
}

// allowedOutput describes the files that the commands write.
var allowedOutput = report.RunFormats.Allowed() + "; with trial, sweep and capacity, " +
	report.ResultFormats.Allowed() + "; with compare also .xml; with shadow, " +
	report.ShadowFormats.Allowed() + "; with trace, json, text, or " +
	report.TraceFormats.Allowed() + "; with record, " + report.RecordFormats.Allowed()

func isOutput(s string) bool {
	formats := slices.Concat(report.RunFormats, report.ResultFormats, report.ShadowFormats, report.RecordFormats)
	_, ok := formats.Of(s)
	return ok && isPath(s) || IsStandardOutput(s)
}

func readOrigin(s string) (string, error) {
	s, err := readURL(s)
	if err == nil && strings.Count(s, "/") > 2 {
		err = errForm
	}
	return s, err
}

func readEndpoint(s string) (string, error) {
	offer, address, _ := strings.Cut(s, "=")
	if !isOffer(offer) {
		return "", errForm
	}
	address, err := readTarget(address)
	return offer + "=" + address, err
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

func isHost(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || hostName.MatchString(s)
}

// isPort also accepts no port, and 0, which means any free one.
func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil || s == ""
}
