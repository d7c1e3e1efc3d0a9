package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"kvbooth/sidecar/api"
)

// useToken is the remedy for a rejected token.
const useToken = "use the load generator's token (LOADGEN_TOKEN, token_file, or its Secret), also in Grafana"

// loadgen examines the load generator and stores its status and snapshot for the other parts.
func (e *exam) loadgen(ctx context.Context, all *findings) {
	health, err := e.get(ctx, e.at("healthz"), "")
	if e.TargetAlone && (err != nil || health.code != http.StatusOK) {
		all.skip("no load generator responds at "+e.LoadgenURL, "start it, or set --loadgen-url, to check it, too")
		return
	}
	if err != nil {
		remedy := "start the load generator, or set --loadgen-url; in Kubernetes: kubectl port-forward to its service"
		if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
			remedy = "set --loadgen-url to a name in its certificate, and SSL_CERT_FILE to the PEM file of a private authority"
		}
		all.problem(fmt.Sprintf("%s is unreachable: %v", e.LoadgenURL, err), remedy)
		return
	}
	if health.code != http.StatusOK {
		all.problem(fmt.Sprintf("%s is not the load generator, or is unhealthy: %s", e.LoadgenURL, health.describe()),
			"set --loadgen-url to the load generator's URL, without /api/v1; see its log")
		return
	}
	client, err := api.NewClient(e.http, e.LoadgenURL, e.Token)
	if err != nil {
		all.problem(err.Error(), "correct --loadgen-url")
		return
	}
	e.checkAccess(ctx, all, client)
	if e.status != nil {
		e.checkStatus(ctx, all, client)
	}
	health.date(all)
}

func (e *exam) at(path ...string) string {
	u, err := url.Parse(e.LoadgenURL)
	if err != nil {
		panic(err) // Options.Check has parsed it
	}
	return u.JoinPath(path...).String()
}

// checkAccess checks whether the load generator requires a token, and whether it accepts ours.
func (e *exam) checkAccess(ctx context.Context, all *findings, client *api.Client) {
	open, err := e.isOpen(ctx)
	switch {
	case err != nil:
		all.skip("whether it requires a token: "+err.Error(), "")
	case open && isLoopback(e.LoadgenURL):
		all.ok("no token is set: it listens on loopback only, where anyone can control it")
	case open:
		all.problem("anyone can control it without a token",
			"set LOADGEN_TOKEN (token_file) to at least 16 random characters, and restart it")
	default:
		all.ok("a token is set: nothing can be changed without it")
	}
	status, err := client.Status(ctx)
	var refused *api.ProblemError
	unauthorized := errors.As(err, &refused) && refused.Status == http.StatusUnauthorized
	limited := errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests
	switch {
	case err == nil:
		e.status = &status
	case unauthorized && e.Token == "":
		all.problem("it requires a token, and none was given",
			"set --token-file or KVBOOTH_TOKEN to the load generator's LOADGEN_TOKEN")
		return
	case unauthorized || limited:
		all.problem("it rejects our token: "+refused.Error(), useToken)
		return
	default:
		all.problem("it does not report its status: "+api.Reason(err).Error(),
			"see the load generator's log; if it rejects the Host, add it to its setting hosts")
		return
	}
	if !open {
		e.checkToken(ctx, all)
	}
}

// isOpen reports whether a change is accepted without a token. The request has an invalid body, so that it changes
// nothing.
func (e *exam) isOpen(ctx context.Context) (bool, error) {
	a, err := e.sendInvalid(ctx, "")
	return a.code != http.StatusUnauthorized && a.code != http.StatusForbidden, err
}

// checkToken checks whether our token is accepted for changes, because reading may not require one.
func (e *exam) checkToken(ctx context.Context, all *findings) {
	a, err := e.sendInvalid(ctx, e.Token)
	switch {
	case err != nil:
		all.skip("whether our token is accepted: "+err.Error(), "")
	case a.code == http.StatusBadRequest || a.code == http.StatusUnprocessableEntity:
		all.ok("our token is accepted")
	case e.Token == "":
		all.skip("our token: none given; reading does not need one here",
			"set --token-file or KVBOOTH_TOKEN to check it")
	default:
		all.problem("it rejects our token: "+a.describe(), useToken)
	}
}

// sendInvalid sends a change with an invalid body.
func (e *exam) sendInvalid(ctx context.Context, token string) (answer, error) {
	body := strings.NewReader("no JSON")
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, e.at("api/v1/workload"), body)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return ask(e.http, req)
}

// checkStatus checks the load generator's status.
func (e *exam) checkStatus(ctx context.Context, all *findings, client *api.Client) {
	s := e.status
	if s.Version == e.Version {
		all.ok("it responds, version " + s.Version)
	} else {
		all.warn(fmt.Sprintf("it responds, version %s; this program is version %s", s.Version, e.Version),
			"use the booth program of the same version")
	}
	if err := client.Ready(ctx); err == nil {
		all.ok("it is ready")
	} else {
		all.problem("it is not ready: "+api.Reason(err).Error(), "fix its target, see below")
	}
	switch {
	case !s.Store.OK:
		all.problem(fmt.Sprintf("its database %s fails: %s", s.Store.Path, s.Store.Problem),
			"free space on its volume, or fix the reason given")
	case s.Store.Damage != "":
		all.problem(s.Store.Damage, "restart the load generator after that")
	case s.Store.Notice != "":
		all.warn(fmt.Sprintf("its database %s: %s", s.Store.Path, s.Store.Notice), "check the disk for errors")
	case s.Store.LostTurns > 0:
		all.warn(fmt.Sprintf("its database %s has lost %d turns", s.Store.Path, s.Store.LostTurns),
			"check whether the disk is fast enough; restart it to reset the counter")
	default:
		all.ok("its database " + s.Store.Path + " is healthy")
	}
	switch s.Client.Verdict {
	case api.VerdictFine:
		all.ok("its own error is negligible")
	case api.VerdictNoticeable:
		all.ok("its own error is noticeable: " + s.Client.Reason)
	case api.VerdictBottleneck:
		all.warn("the load generator's own timing error is too large: "+s.Client.Reason,
			"give it more CPU, or its own machine; until then these metrics are not rated")
	default:
		all.skip("its own error: not known yet", "try again in a minute")
	}
	snapshot, err := client.Snapshot(ctx)
	if err != nil {
		all.problem("it provides no snapshot: "+api.Reason(err).Error(), "see the load generator's log")
		return
	}
	e.snapshot = &snapshot
}
