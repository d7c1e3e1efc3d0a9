package plugin

import (
	"cmp"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/stretchr/testify/require"
)

// An invalid setting is reported with field, value and what is allowed, in the health check, in every call and in every
// stream, and causes no crash.
func TestWrongSettings(t *testing.T) {
	for _, tt := range []struct {
		json, token, field string
	}{
		{`{"sidecarUrl":"localhost:8088"}`, "", "sidecarUrl"},
		{`{"sidecarUrl":"ftp://localhost"}`, "", "sidecarUrl"},
		{`{"sidecarUrl":"http://user:s3cret@localhost"}`, "", "sidecarUrl"},
		{`{"sidecarUrl":"http://localhost?token=s3cret"}`, "", "sidecarUrl"},
		{`{"sidecarUrl":8088}`, "", "sidecarUrl"},
		{`{"sidecarUrl":"http://localhost","operatorRole":"Viewer"}`, "", "operatorRole"},
		{`{"sidecarUrl":"http://localhost","operatorRole":"editor"}`, "", "operatorRole"},
		{`{"sidecarUrl":"http://localhost","operatorRole":true}`, "", "operatorRole"},
		{`{"sidecarUrl":"http://localhost"}`, "s3cret\r\nX-Grafana-User: root", "token"},
		{`{"sidecarUrl":"http://localhost"}`, "s3cret é", "token"},
		{`{"sidecarUrl":"http://localhost"}`, strings.Repeat("s3cret", 100), "token"},
		{`{"sidecarUrl":"http://localhost","timeout":0}`, "", "timeout"},
		{`{"sidecarUrl":"http://localhost","timeout":-1}`, "", "timeout"},
		{`{"sidecarUrl":"http://localhost","timeout":1e9}`, "", "timeout"},
		{`{"sidecarUrl":"http://localhost","url":5}`, "", "jsonData"}, // a reason for the SDK to panic
		{`{"sidecarUrl":"http://localhost","tlsAuthWithCACert":true,"serverName":5}`, "", "jsonData"},
		{`{"sidecarUrl":"http://localhost","tlsAuthWithCACert":true}`, "", "tlsCACert"},
		{`[]`, "", "jsonData"},
		{`{"sidecarUrl":`, "", "jsonData"},
	} {
		secrets := map[string]string{"token": "http://localhost " + tt.token, "tlsCACert": "s3cret, not PEM"}
		name := cmp.Or(labels[tt.field], tt.field) // the name in the form
		a := start(t, backend.AppInstanceSettings{JSONData: []byte(tt.json), DecryptedSecureJSONData: secrets})

		p := problem(t, resource(t, a, user("Admin"), "GET", "status", ""))
		require.Equal(t, 503, p.Status, tt.json)
		require.Equal(t, tt.field, p.Field, tt.json)
		require.NotEmpty(t, p.Value)
		require.NotEmpty(t, p.Allowed)
		require.Contains(t, p.Detail, "settings are invalid")
		stop := problem(t, resource(t, a, user("Editor"), "POST", "workload/stop", "{}"))
		require.Equal(t, 403, stop.Status, "no operation is allowed")

		health, _ := check(t, a, user("Admin"))
		require.Equal(t, backend.HealthStatusError, health.Status)
		require.Contains(t, health.Message, name)
		require.Contains(t, health.Message, tt.field, "as a provisioning file has it")

		s := run(t, a, "main/snapshot")
		s.contains(t, name)
		all := p.Detail + p.Value + health.Message + string(health.JSONDetails) + s.last()
		require.NotContains(t, all, "s3cret")
	}
}

// Before any setting is entered, Grafana passes no URL. The settings are then not invalid: the answers say that an
// administrator must set the URL.
func TestEmptySettings(t *testing.T) {
	const todo = "no load generator is configured yet; an administrator must set the Load generator URL on the app's " +
		"configuration page"
	for _, json := range []string{"", "null", "{}", `{"sidecarUrl":" "}`} {
		a := start(t, backend.AppInstanceSettings{JSONData: []byte(json)})
		health, details := check(t, a, user("Admin"))
		require.Equal(t, "The Load generator URL is not set. Enter it, such as http://127.0.0.1:8088, and save.",
			health.Message)
		require.Equal(t, reasonNoURL, details.Reason)
		p := problem(t, get(t, a, "status"))
		require.Equal(t, 503, p.Status)
		require.Equal(t, todo, p.Detail)
		require.Equal(t, "sidecarUrl", p.Field)
		viewers, _ := check(t, a, user("Viewer"))
		require.Equal(t, sentence(todo), viewers.Message)
		run(t, a, "main/snapshot").contains(t, "an administrator must set")
	}
}

// The form and the errors use the same names of settings.
func TestLabelsAreTheForms(t *testing.T) {
	form, err := os.ReadFile("../../src/config/ConnectionForm.tsx")
	require.NoError(t, err)
	for field, label := range labels {
		require.Contains(t, string(form), `label="`+label+`"`, field)
		require.Contains(t, string(form), field)
	}
}

// A token is only sent to the URL for which it was entered.
func TestTokenOfAnotherURL(t *testing.T) {
	s := newSidecar(t)
	withSecret := func(url, secret string) *App {
		settings := configured(url, "")
		settings.DecryptedSecureJSONData["token"] = secret
		return start(t, settings)
	}
	for _, secret := range []string{token, "http://127.0.0.1:1 " + token, s.URL + ".example " + token} {
		a := withSecret(s.URL, secret)
		p := problem(t, resource(t, a, user("Admin"), "GET", "status", ""))
		require.Equal(t, "token", p.Field)
		require.Contains(t, p.Allowed, "the token for "+s.URL)
		require.NotContains(t, p.Detail, token)
	}
	require.Empty(t, s.take(), "nothing is sent")
	a := withSecret(s.URL, s.URL+" ") // from a provisioning file without a token
	_, details := check(t, a, user("Admin"))
	require.Equal(t, reasonToken, details.Reason, "the load generator asks for one")
	a = withSecret(" "+s.URL+" ", s.URL+"/  "+token+"\n") // with surrounding spaces
	require.Equal(t, 200, get(t, a, "status").Status)
}

// TLS comes from the plugin's HTTP options, for calls and streams.
func TestTLS(t *testing.T) {
	s := unstarted()
	s.StartTLS()
	t.Cleanup(s.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	for _, tt := range []struct {
		json, authority string
		trusted         bool
	}{
		{`"tlsAuthWithCACert":true`, authority, true},
		{`"tlsSkipVerify":true`, "", true},
		{`"tlsAuthWithCACert":true,"serverName":"elsewhere.example"`, authority, false},
		{`"tlsAuthWithCACert":false`, authority, false},
	} {
		settings := configured(s.URL, ","+tt.json)
		settings.DecryptedSecureJSONData["tlsCACert"] = tt.authority
		a := start(t, settings)
		res, live := get(t, a, "status"), run(t, a, "main/snapshot")
		if tt.trusted {
			require.Equal(t, 200, res.Status, tt.json)
			live.contains(t, `"lanes"`)
			continue
		}
		require.Contains(t, problem(t, res).Detail, "is not trusted", tt.json)
		live.contains(t, "is not trusted")
	}
}
