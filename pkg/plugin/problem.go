package plugin

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/gorilla/websocket"
	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"

	"kvbooth/sidecar/api"
)

// reason classifies a fault in one word, for programs. The problem has the text for users.
type reason string

const (
	reasonNoURL       reason = "no_url"      // the app is not configured yet: the load generator's URL is missing
	reasonSettings    reason = "settings"    // of the app
	reasonCall        reason = "call"        // the call itself is refused
	reasonUnreachable reason = "unreachable" // no connection
	reasonTimeout     reason = "timeout"     // a connection, but no answer
	reasonCertificate reason = "certificate" // the server's certificate is not trusted
	reasonToken       reason = "token"       // the load generator refuses the app
	reasonHost        reason = "host"        // the load generator rejects the URL's host name
	reasonForeign     reason = "foreign"     // the answer is no load generator's
)

// fault is an error in the form in which the app reports it.
type fault struct {
	reason reason
	api.Problem
}

// forbidden is the error of a call that requires a higher role.
type forbidden struct{ least role }

func (e *forbidden) Error() string {
	return fmt.Sprintf("this requires the Grafana role %s or higher", e.least)
}

// passed are the statuses that concern the caller's own call, and that are forwarded. Others concern the app and the
// load generator: a browser would take a 401 for the end of its session with Grafana, and a 421 for a reason to retry.
var passed = []int{
	http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge,
	http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusInternalServerError,
	http.StatusServiceUnavailable,
}

// noURL is the detail for every role. It contains no address.
const noURL = "no load generator is configured yet; an administrator must set the Load generator URL on the app's " +
	"configuration page"

// outlines are the details for roles that may only read. They contain no addresses.
var outlines = map[reason]string{
	reasonSettings:    "the app's settings are invalid",
	reasonUnreachable: "the load generator is unreachable",
	reasonTimeout:     "the load generator timed out",
	reasonCertificate: "the load generator's certificate is not trusted",
	reasonToken:       "the load generator rejects the app's token",
	reasonHost:        "the load generator rejects the host name in its URL",
	reasonForeign:     "the server is not a load generator, or its version is incompatible with this app",
}

// askAdmin follows an outline.
const askAdmin = "; an administrator can see details with “Test connection” in the app's settings"

// outline returns the fault without addresses and values, except for an error in the caller's own call.
func (f fault) outline() fault {
	if text := outlines[f.reason]; text != "" {
		f.Detail, f.Value, f.Allowed = text+askAdmin, "", ""
		if f.Field != "" {
			f.Detail = cmp.Or(labels[f.Field], f.Field) + ": " + f.Detail
		}
	}
	return f
}

// explain returns the fault of an error, with what to do.
func (a *App) explain(err error) fault {
	f := a.classify(err)
	f.Type, f.Title = "about:blank", http.StatusText(f.Status)
	return f
}

// refused returns the fault of a call that is refused.
func refused(status int, detail string) fault {
	return fault{reasonCall, api.Problem{Status: status, Detail: detail}}
}

func (a *App) classify(err error) fault {
	var (
		setting  *settingsError
		own      *forbidden
		many     *tooMany
		field    *api.FieldError
		tooLarge *http.MaxBytesError
		theirs   *api.ProblemError
	)
	switch {
	case errors.Is(err, errNoURL):
		return fault{reasonNoURL, api.Problem{Status: http.StatusServiceUnavailable, Detail: noURL, Field: "sidecarUrl"}}
	case errors.As(err, &setting):
		return fault{reasonSettings, api.Problem{
			Status: http.StatusServiceUnavailable, Detail: "the app's settings are invalid; " + setting.Error(),
			Field: setting.Field, Value: setting.Value, Allowed: setting.Allowed,
		}}
	case errors.As(err, &own):
		return refused(http.StatusForbidden, own.Error())
	case errors.As(err, &many):
		return refused(http.StatusTooManyRequests, many.Error())
	case errors.As(err, &field):
		return fault{reasonCall, api.Problem{
			Status: http.StatusUnprocessableEntity, Detail: field.Error(), Field: field.Field, Value: field.Value,
			Allowed: field.Allowed,
		}}
	case errors.As(err, &tooLarge):
		return refused(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the request body is larger than %d bytes", tooLarge.Limit))
	case errors.As(err, &theirs):
		p := theirs.Problem
		p.Detail = theirs.Error() // never empty
		return a.refusal(p)
	case errors.Is(err, api.ErrNotFound):
		return refused(http.StatusNotFound, err.Error())
	case errors.Is(err, httpclient.ErrResponseBodyTooLarge):
		return refused(http.StatusBadGateway,
			fmt.Sprintf("the response is larger than %d bytes; request a smaller part", a.limits.answer))
	}
	return a.trouble(err)
}

// refusal returns the fault of the load generator's refusal, or of a refusal that another server sent.
func (a *App) refusal(p api.Problem) fault {
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		p = api.Problem{
			Status: http.StatusBadGateway,
			Detail: fmt.Sprintf("the load generator at %s rejects the app's token (%s); in the app's settings, enter "+
				"the token that it was started with", a.settings.SidecarURL, p.Detail),
		}
		return fault{reasonToken, p}
	case http.StatusMisdirectedRequest:
		return fault{reasonHost, api.Problem{
			Status: http.StatusBadGateway,
			Detail: fmt.Sprintf("the load generator at %s rejects the host name in its URL: %s", a.settings.SidecarURL,
				p.Detail),
		}}
	}
	if !slices.Contains(passed, p.Status) {
		p.Status = http.StatusBadGateway
		return fault{reasonForeign, p}
	}
	return fault{reasonCall, p}
}

// trouble returns the fault of a failed connection between the app and the load generator.
func (a *App) trouble(err error) fault {
	cause := err
	if u := (*url.Error)(nil); errors.As(err, &u) {
		cause = u.Err // without the URL, which the detail contains already
	}
	var (
		untrusted *tls.CertificateVerificationError
		network   net.Error
		f         = fault{reasonUnreachable, api.Problem{Status: http.StatusBadGateway}}
		todo      string
	)
	switch {
	case errors.As(err, &untrusted):
		f.reason, todo = reasonCertificate,
			"has a certificate that is not trusted (%v); add its CA certificate in the app's settings"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		f.reason, f.Status, todo = reasonTimeout, http.StatusGatewayTimeout,
			"timed out (%v); check that it is running and reachable from the Grafana server"
	case network != nil:
		todo = "is unreachable (%v); start it, or correct its URL in the app's settings"
	case errors.Is(err, api.ErrUnavailable) && !errors.Is(err, websocket.ErrReadLimit):
		todo = "closed its stream (%v); check that it is running"
	default:
		f.reason, todo = reasonForeign, "sent an invalid response: %v"
	}
	f.Detail = fmt.Sprintf("the load generator at %s "+todo, a.settings.SidecarURL, cause)
	return f
}

// fail answers with the problem document of an error.
func (a *App) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := a.explain(err)
	full := f.Detail
	if u := backend.PluginConfigFromContext(r.Context()).User; !a.may(u, operate) {
		f = f.outline()
	}
	log := backend.Logger.FromContext(r.Context()).With("method", r.Method, "path", r.URL.Path, "status", f.Status,
		"problem", full)
	if f.Status >= http.StatusInternalServerError {
		log.Warn("request failed")
	} else {
		log.Debug("request rejected")
	}
	if err := reply(w, f.Status, "application/problem+json", f.Problem); err != nil {
		log.Error("writing the error response failed", "error", err)
	}
}
