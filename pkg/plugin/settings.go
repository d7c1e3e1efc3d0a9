package plugin

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"
	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"

	"kvbooth/sidecar/api"
)

// settings are an administrator's entries on the configuration page, or in a provisioning file. TLS is part of the
// SDK's HTTP options.
type settings struct {
	SidecarURL   string `json:"sidecarUrl"`
	OperatorRole role   `json:"operatorRole"` // the least role that may operate
	token        string

	// secret is what Grafana stores for the token: the URL that it was entered for, a space, and the token. A changed
	// URL therefore does not receive the token.
	secret string
}

// settingsError names the invalid setting. The caller of a resource cannot correct it.
type settingsError struct{ api.FieldError }

// labels are the names of the settings on the configuration page.
var labels = map[string]string{
	"sidecarUrl": "Load generator URL", "operatorRole": "Who may operate", "token": "Token", "tlsCACert": "CA certificate",
}

// Error names the setting as the configuration page and a provisioning file do.
func (e *settingsError) Error() string {
	named := e.FieldError
	if label := labels[e.Field]; label != "" {
		named.Field = label + " (" + e.Field + ")"
	}
	return named.Error()
}

func wrong(field, value, allowed string) error {
	return &settingsError{api.FieldError{Field: field, Value: value, Allowed: allowed}}
}

// errNoURL is the error before any URL is entered.
var errNoURL = wrong("sidecarUrl", "", "the load generator's URL, such as http://127.0.0.1:8088")

// readSettings returns the settings with their defaults. The error is a settingsError, as are those of the functions
// below.
func readSettings(from backend.AppInstanceSettings) (settings, error) {
	s := settings{secret: strings.TrimSpace(from.DecryptedSecureJSONData["token"])}
	if err := s.parse(from.JSONData); err != nil {
		return s, err
	}
	return s, s.check()
}

func (s *settings) parse(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	err := json.Unmarshal(text, s)
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) && kind.Field != "" {
		return wrong(kind.Field, "a JSON "+kind.Value, "a string")
	}
	if err != nil {
		return wrong("jsonData", "the given value", "a JSON object")
	}
	return nil
}

func (s *settings) check() error {
	if s.OperatorRole == "" {
		s.OperatorRole = editor
	}
	if s.OperatorRole != editor && s.OperatorRole != admin {
		return wrong("operatorRole", strconv.Quote(string(s.OperatorRole)), "Editor or Admin")
	}
	s.SidecarURL = strings.TrimSpace(s.SidecarURL)
	if s.SidecarURL == "" {
		return errNoURL
	}
	return s.checkToken()
}

// checkToken extracts the token from its secret. A URL without a token, as in a provisioning file that sets none, is no
// token.
func (s *settings) checkToken() error {
	url, token, _ := strings.Cut(s.secret, " ")
	if s.token = strings.TrimSpace(token); s.token == "" && (url == "" || strings.Contains(url, "://")) {
		return nil
	}
	if !sameURL(url, s.SidecarURL) {
		return wrong("token", "a token for another URL, or for none,",
			"the token for "+s.SidecarURL+"; enter it again (in a provisioning file: the URL, a space, the token)")
	}
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(s.token) > api.MaxToken || strings.ContainsFunc(s.token, odd) {
		return wrong("token", "the given value",
			fmt.Sprintf("the load generator's token: at most %d printable ASCII characters, no spaces", api.MaxToken))
	}
	return nil
}

func sameURL(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// connect makes the client for the settings; it sends nothing. Its idle connections live until hangUp.
func connect(ctx context.Context, from backend.AppInstanceSettings, s settings) (c *api.Client, hangUp func(),
	err error,
) {
	hangUp = func() {}
	opts, err := httpOptions(ctx, from)
	if err != nil {
		return nil, hangUp, err
	}
	var transport *http.Transport
	opts.ConfigureTransport = func(_ httpclient.Options, t *http.Transport) { transport = t }
	hc, err := httpclient.New(opts)
	if err != nil {
		return nil, hangUp, wrong(ofCertificates(opts), "the given value",
			"PEM certificates with their matching keys ("+err.Error()+")")
	}
	c, err = api.NewClient(hc, s.SidecarURL, s.token)
	if field := (*api.FieldError)(nil); errors.As(err, &field) {
		return nil, hangUp, wrong("sidecarUrl", field.Value, field.Allowed)
	}
	// The client cannot find the transport behind the SDK's middleware.
	c.Dialer = &websocket.Dialer{
		Proxy: transport.Proxy, NetDialContext: transport.DialContext, TLSClientConfig: transport.TLSClientConfig.Clone(),
		HandshakeTimeout: handshakeTimeout,
	}
	return c, transport.CloseIdleConnections, nil
}

// ofCertificates returns the setting whose certificates cannot be read.
func ofCertificates(o httpclient.Options) string {
	if o.TLS != nil && o.TLS.CACertificate != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(o.TLS.CACertificate)) {
		return "tlsCACert"
	}
	return "TLS settings"
}

// httpOptions returns the SDK's options. The SDK panics on an option of the wrong type, which becomes an error.
func httpOptions(ctx context.Context, from backend.AppInstanceSettings) (opts httpclient.Options, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = wrong("jsonData", "an HTTP option of the wrong type", "HTTP and TLS options as Grafana writes them")
		}
	}()
	opts, err = from.HTTPClientOptions(ctx)
	if err != nil {
		return opts, wrong("jsonData", "the given value", "a JSON object")
	}
	if opts.Timeouts.Timeout <= 0 || opts.Timeouts.Timeout > maxTimeout {
		return opts, wrong("timeout", opts.Timeouts.Timeout.String(), fmt.Sprintf("1 to %.0f seconds", maxTimeout.Seconds()))
	}
	opts.Timeouts.DialTimeout = min(opts.Timeouts.DialTimeout, dialTimeout)
	return opts, nil
}
