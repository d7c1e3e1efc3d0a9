package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"kvbooth/sidecar/api"
)

// giveOurs is what to do about a token that is not taken.
const giveOurs = "give the one that the load generator was started with (LOADGEN_TOKEN, token_file, or its Secret), and give Grafana the same"

// loadgen looks at the load generator, and keeps what it tells for the other parts.
func (e *exam) loadgen(ctx context.Context, all *findings) {
	health, err := e.get(ctx, e.at("healthz"), "")
	if err != nil {
		all.problem(fmt.Sprintf("nothing answers at %s: %v", e.LoadgenURL, err), "start the load generator, or name it with --loadgen-url; in Kubernetes: kubectl port-forward to its service")
		return
	}
	if health.code != http.StatusOK {
		all.problem(fmt.Sprintf("%s is not the load generator, or is not well: %s", e.LoadgenURL, health.says()), "give --loadgen-url the address of the load generator, without /api/v1; see its log")
		return
	}
	client, err := api.NewClient(e.http, e.LoadgenURL, e.Token)
	if err != nil {
		all.problem(err.Error(), "mend --loadgen-url")
		return
	}
	e.lookToken(ctx, all, client)
	if e.status != nil {
		e.lookStatus(ctx, all, client)
	}
	health.date(all)
}

func (e *exam) at(path ...string) string {
	u, err := url.Parse(e.LoadgenURL)
	if err != nil {
		panic(err) // it was checked
	}
	return u.JoinPath(path...).String()
}

// lookToken says whether everybody may operate, and whether our token is taken.
func (e *exam) lookToken(ctx context.Context, all *findings, client *api.Client) {
	open, err := e.opensToAll(ctx)
	switch {
	case err != nil:
		all.skip("whether it wants a token: "+err.Error(), "")
	case open && isLoopback(e.LoadgenURL):
		all.ok("no token is set: it listens on its own machine alone, and takes orders from there")
	case open:
		all.problem("it takes orders without a token", "set LOADGEN_TOKEN (token_file) to 16 characters or more that nobody guesses, and restart it")
	default:
		all.ok("a token is set: nobody without it changes anything")
	}
	status, err := client.Status(ctx)
	var refused *api.ProblemError
	switch {
	case err == nil:
		e.status = &status
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized && e.Token == "":
		all.problem("it wants a token, and none was given", "give it by --token-file or KVBOOTH_TOKEN: what LOADGEN_TOKEN of the load generator is")
		return
	case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusTooManyRequests):
		all.problem("it does not take our token: "+refused.Error(), giveOurs)
		return
	default:
		all.problem("it does not tell its status: "+api.Reason(err).Error(), "see the load generator's log; a Host that it does not know is allowed by its setting hosts")
		return
	}
	if !open {
		e.lookOurs(ctx, all)
	}
}

// opensToAll tries an order without a token that is none: a body that is no JSON changes nothing
// where it is let in.
func (e *exam) opensToAll(ctx context.Context) (bool, error) {
	a, err := e.misorder(ctx, "")
	return a.code != http.StatusUnauthorized && a.code != http.StatusForbidden, err
}

// lookOurs says whether our token lets us in to operate, since a public page is read without.
func (e *exam) lookOurs(ctx context.Context, all *findings) {
	a, err := e.misorder(ctx, e.Token)
	switch {
	case err != nil:
		all.skip("whether our token is taken: "+err.Error(), "")
	case a.code == http.StatusBadRequest || a.code == http.StatusUnprocessableEntity:
		all.ok("our token is taken")
	case e.Token == "":
		all.skip("our token: none was given; reading needs none here", "give it by --token-file or KVBOOTH_TOKEN to have it checked")
	default:
		all.problem("it does not take our token: "+a.says(), giveOurs)
	}
}

func (e *exam) misorder(ctx context.Context, token string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, e.at("api/v1/workload"), strings.NewReader("no JSON"))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return ask(e.http, req)
}

// lookStatus goes through what the load generator tells of itself.
func (e *exam) lookStatus(ctx context.Context, all *findings, client *api.Client) {
	s := e.status
	if s.Version == e.Version {
		all.ok("it answers, version " + s.Version)
	} else {
		all.warn(fmt.Sprintf("it answers, version %s; this program is %s", s.Version, e.Version), "use the booth program that came with it")
	}
	if err := client.Ready(ctx); err == nil {
		all.ok("it is ready")
	} else {
		all.problem("it is not ready: "+api.Reason(err).Error(), "mend its target, see below")
	}
	switch {
	case !s.Store.OK:
		all.problem(fmt.Sprintf("its store %s fails: %s", s.Store.Path, s.Store.Problem), "free space on its volume, or mend what the reason names")
	case s.Store.LostTurns > 0:
		all.warn(fmt.Sprintf("its store %s has lost %d turns", s.Store.Path, s.Store.LostTurns), "see whether the disk keeps up; restart it to count from 0")
	default:
		all.ok("its store " + s.Store.Path + " is well")
	}
	switch s.Client.Verdict {
	case api.VerdictFine:
		all.ok("it keeps up with the load")
	case api.VerdictBottleneck:
		all.warn("it is the bottleneck itself: "+s.Client.Reason, "give it more CPU, or a machine of its own; until then nothing is called better or worse")
	default:
		all.skip("whether it keeps up: it does not know yet", "ask again in a minute")
	}
	snapshot, err := client.Snapshot(ctx)
	if err != nil {
		all.problem("it tells no snapshot: "+api.Reason(err).Error(), "see the load generator's log")
		return
	}
	e.snapshot = &snapshot
}
