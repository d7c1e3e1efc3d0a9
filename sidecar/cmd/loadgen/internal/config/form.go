package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/report"
)

// form is what a text may look like. Read gives it in its canonical spelling.
type form struct {
	allowed string
	read    func(string) (string, error)
}

var errForm = errors.New("not of the form")

var forms = map[string]form{
	"line":           {fmt.Sprintf("one line of at most %d characters", api.MaxLine), readLine},
	"path":           {"a path", readPath},
	"url":            {"an http:// or https:// URL with a host, without user, query or fragment", readURL},
	"target":         {"an http:// or https:// URL with a host, without user, query or fragment, such as http://127.0.0.1:8000", readTarget},
	"address":        {"an IP address or localhost with a port, such as 127.0.0.1:8088", readAddress},
	"nats":           {"a nats:// or tls:// URL with a host and a port, such as nats://127.0.0.1:4222", readNATS},
	"fleet":          {"1 to 32 lower-case letters, digits and hyphens", readFleet},
	"host":           {"a host name or an IP address, without a port", readHost},
	"origin":         {"an http:// or https:// URL with a host and an optional port only", readOrigin},
	"bucket":         {"a bucket name of 3 to 63 lower-case letters, digits, dots and hyphens", readBucket},
	"opening_tokens": {"a whole number, " + api.Limits["opening_tokens"].String(), whole("opening_tokens")},
	"openings":       {"a whole number, " + api.Limits["openings"].String(), whole("openings")},
	"endpoint":       {"MODE=URL, such as kv=http://kv:8000 or kv/eagle3=http://kv:8000", readEndpoint},
	"condition":      {report.Allowed(), readCondition},
	"output":         {report.AllowedOutput + "; with trial, sweep, capacity and compare, " + report.AllowedReport + "; with shadow, " + report.AllowedShadow, readOutput},
	"level":          {"a whole number, " + api.SweepLimits["levels"].String(), whole("concurrency")},
	"offer":          {"a mode or mode/speculation, such as kv or kv/eagle3", readOffer},
}

func readLine(s string) (string, error) {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > api.MaxLine || strings.ContainsFunc(s, unicode.IsControl) {
		return "", errForm
	}
	return s, nil
}

func readPath(s string) (string, error) {
	if len(s) > 4096 || strings.ContainsFunc(s, unicode.IsControl) {
		return "", errForm
	}
	return s, nil
}

func readURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Opaque != "" || !isHost(u.Hostname()) ||
		!isPort(u.Port()) || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#") {
		return "", errForm
	}
	return strings.TrimRight(u.String(), "/"), nil
}

func readNATS(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Opaque != "" || !isHost(u.Hostname()) || u.Port() == "" || !isPort(u.Port()) ||
		u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#") {
		return "", errForm
	}
	return u.Scheme + "://" + u.Host, nil
}

var fleetName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

func readFleet(s string) (string, error) {
	if !fleetName.MatchString(s) {
		return "", errForm
	}
	return s, nil
}

// readTarget takes off the /v1 that users copy from OpenAI clients.
func readTarget(s string) (string, error) {
	s, err := readURL(s)
	return strings.TrimRight(strings.TrimSuffix(s, "/v1"), "/"), err
}

func readAddress(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil || port == "" || !isPort(port) {
		return "", errForm
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" && host != "" {
		return "", errForm
	}
	return s, nil
}

// whole reads a whole number within the limits of a name; the empty text says that there
// is none.
func whole(name string) func(string) (string, error) {
	return func(s string) (string, error) {
		n, err := strconv.Atoi(s)
		if err != nil || !api.Limits[name].Allows(float64(n)) {
			return "", errForm
		}
		return strconv.Itoa(n), nil
	}
}

func readHost(s string) (string, error) {
	if !isHost(s) {
		return "", errForm
	}
	return strings.ToLower(s), nil
}

func readOffer(s string) (string, error) {
	mode, speculation, found := strings.Cut(s, "/")
	if !slices.Contains(api.Modes, api.Mode(mode)) || api.Mode(mode) == api.ModeUnknown || found && !slices.Contains(api.Speculations, api.Speculation(speculation)) {
		return "", errForm
	}
	return s, nil
}

func readCondition(s string) (string, error) {
	_, err := report.ParseCondition(s)
	return s, err
}

func readOutput(s string) (string, error) {
	_, shadow := report.ShadowFormat(s)
	if _, ok := report.FormatOf(s); !ok && !shadow && !report.IsOutput(s) {
		return "", errForm
	}
	return readPath(s)
}

func readOrigin(s string) (string, error) {
	s, err := readURL(s)
	if err == nil && strings.Count(s, "/") > 2 {
		err = errForm
	}
	return s, err
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func readBucket(s string) (string, error) {
	if !bucketName.MatchString(s) {
		return "", errForm
	}
	return s, nil
}

func readEndpoint(s string) (string, error) {
	offer, address, _ := strings.Cut(s, "=")
	offer, err := readOffer(offer)
	if err != nil {
		return "", err
	}
	address, err = readTarget(address)
	return offer + "=" + address, err
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

func isHost(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || hostName.MatchString(s)
}

// isPort accepts no port, too, and 0, which means any free one.
func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil || s == ""
}
