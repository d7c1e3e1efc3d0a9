package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
)

// Limits of what the client reads.
const (
	maxAnswer  = 64 << 20 // a list of baselines
	maxProblem = 64 << 10
)

// Client calls the sidecar. It follows no redirect and sends the token only in a header. It is safe for concurrent use.
//
// The errors of all calls: a [*FieldError] for a field that the sidecar refuses, a [*ProblemError] (which may be an
// [ErrNotFound], [ErrConflict] or [ErrUnavailable]) for any other refusal, and the http.Client's error where the
// sidecar cannot be reached.
type Client struct {
	// Dialer opens streams. Where it is nil, the settings of the http.Client's transport are used, if that is an
	// *http.Transport.
	Dialer *websocket.Dialer

	http    *http.Client
	base    *url.URL
	token   string
	login   string
	silence time.Duration // maximum time between two snapshots of a stream
}

// NewClient makes a client for the sidecar at the base URL, http or https, with or without a path before /api/v1. A nil
// hc means an http.Client without timeouts. An empty token means that the sidecar requires none. The error is a
// [*FieldError].
func NewClient(hc *http.Client, base, token string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, Refuse("url", redacted(u), "http:// or https://, a host, and optionally a port and a path")
	}
	own := http.Client{}
	if hc != nil {
		own = *hc
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{http: &own, base: u, token: token, silence: streamSilence}, nil
}

func redacted(u *url.URL) string {
	if u == nil {
		return "an invalid URL" // it might contain a password
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return strconv.Quote(bare.String())
}

// As returns a client whose calls name a login. The sidecar records it in events.
func (c *Client) As(login string) *Client {
	as := *c
	as.login = login
	return &as
}

// WithoutTimeout returns a client whose calls end only with their context, for answers of any length.
func (c *Client) WithoutTimeout() *Client {
	client, httpClient := *c, *c.http
	httpClient.Timeout = 0
	client.http = &httpClient
	return &client
}

// Ready returns nil if all targets of the sidecar can serve. If one cannot, the error is a [*ProblemError] with the
// reason.
func (c *Client) Ready(ctx context.Context) error {
	res, err := c.send(ctx, http.MethodGet, c.base.JoinPath("readyz"), "", nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// Status returns state, configuration and health.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.call(ctx, http.MethodGet, c.at(nil, "status"), nil, &s)
}

// Snapshot returns the current snapshot. [Client.Stream] yields one every second.
func (c *Client) Snapshot(ctx context.Context) (s Snapshot, err error) {
	return s, c.call(ctx, http.MethodGet, c.at(nil, "snapshot"), nil, &s)
}

// Start starts a lane's workload, or sets the concurrency of a running one. In this and the following calls an empty
// lane means [DefaultLane].
func (c *Client) Start(ctx context.Context, lane string, req StartRequest) (s State, err error) {
	return s, c.call(ctx, http.MethodPost, c.at(laneQuery(lane), "workload", "start"), req, &s)
}

// Stop stops a lane's workload.
func (c *Client) Stop(ctx context.Context, lane string, req StopRequest) (s State, err error) {
	return s, c.call(ctx, http.MethodPost, c.at(laneQuery(lane), "workload", "stop"), req, &s)
}

// Patch changes a lane's workload.
func (c *Client) Patch(ctx context.Context, lane string, p WorkloadPatch) (s State, err error) {
	return s, c.call(ctx, http.MethodPatch, c.at(laneQuery(lane), "workload"), p, &s)
}

// MeasureAnew begins a new step with unchanged settings.
func (c *Client) MeasureAnew(ctx context.Context, lane string) (s State, err error) {
	return s, c.call(ctx, http.MethodPost, c.at(laneQuery(lane), "workload", "measure"), MeasureRequest{}, &s)
}

// SetMode begins a mode change. The state reports its progress.
func (c *Client) SetMode(ctx context.Context, lane string, req ModeRequest) (s State, err error) {
	return s, c.call(ctx, http.MethodPut, c.at(laneQuery(lane), "cluster", "mode"), req, &s)
}

// CancelMode cancels the mode change in progress.
func (c *Client) CancelMode(ctx context.Context, lane string) (s State, err error) {
	return s, c.call(ctx, http.MethodDelete, c.at(laneQuery(lane), "cluster", "mode"), nil, &s)
}

// Cluster returns the known facts of a lane's serving cluster.
func (c *Client) Cluster(ctx context.Context, lane string) (cl Cluster, err error) {
	return cl, c.call(ctx, http.MethodGet, c.at(laneQuery(lane), "cluster"), nil, &cl)
}

// History returns the series of a lane's last ten minutes.
func (c *Client) History(ctx context.Context, lane string) (h History, err error) {
	return h, c.call(ctx, http.MethodGet, c.at(laneQuery(lane), "history"), nil, &h)
}

// Decisions returns the newest decisions of the router of a lane's target, if the target reports them. A limit of 0
// means the sidecar's default.
func (c *Client) Decisions(ctx context.Context, lane string, limit int) (l DecisionList, err error) {
	return l, c.call(ctx, http.MethodGet, c.at(query("lane", lane, "limit", number(limit)), "decisions"), nil, &l)
}

// Shadow returns the cache hits that other routers would have had on a lane's traffic.
func (c *Client) Shadow(ctx context.Context, lane string) (s Shadow, err error) {
	return s, c.call(ctx, http.MethodGet, c.at(laneQuery(lane), "shadow"), nil, &s)
}

// Twin returns the comparison of two lanes that run the same conversations. The error is an [ErrNotFound] if there is
// one lane.
func (c *Client) Twin(ctx context.Context) (t Twin, err error) {
	return t, c.call(ctx, http.MethodGet, c.at(nil, "twin"), nil, &t)
}

// ArrangeTwin changes which mode each of the two lanes has.
func (c *Client) ArrangeTwin(ctx context.Context, req TwinRequest) (t Twin, err error) {
	return t, c.call(ctx, http.MethodPatch, c.at(nil, "twin"), req, &t)
}

// StartShowcase starts a conversation on both lanes. It replaces the last showcase.
func (c *Client) StartShowcase(ctx context.Context, req ShowcaseRequest) (t Twin, err error) {
	return t, c.call(ctx, http.MethodPost, c.at(nil, "twin", "showcase"), req, &t)
}

// StopShowcase ends the showcase in progress. The error is an [ErrConflict] if there is none.
func (c *Client) StopShowcase(ctx context.Context) (t Twin, err error) {
	return t, c.call(ctx, http.MethodDelete, c.at(nil, "twin", "showcase"), nil, &t)
}

// Conversations returns a page of conversations, newest first.
func (c *Client) Conversations(ctx context.Context, q ConversationQuery) (l ConversationList, err error) {
	v := query("lane", q.Lane, "status", string(q.Status), "topic", q.Topic, "cursor", q.Cursor, "limit", number(q.Limit))
	return l, c.call(ctx, http.MethodGet, c.at(v, "conversations"), nil, &l)
}

// Conversation returns a conversation with its transcript.
func (c *Client) Conversation(ctx context.Context, id string) (con Conversation, err error) {
	return con, c.call(ctx, http.MethodGet, c.at(nil, "conversations", id), nil, &con)
}

// Starter returns the opening text of a topic, from the corpus that a lane uses.
func (c *Client) Starter(ctx context.Context, lane, id string) (s Starter, err error) {
	return s, c.call(ctx, http.MethodGet, c.at(laneQuery(lane), "starters", id), nil, &s)
}

// TurnsCSV writes the raw data of a step, or of all steps for step 0. After an error w may contain a part of it.
func (c *Client) TurnsCSV(ctx context.Context, w io.Writer, lane string, step int64) error {
	return c.download(ctx, w, c.at(query("lane", lane, "step", number(step)), "turns.csv"), "text/csv")
}

// Events returns the newest events of a lane, or of everything for an empty lane. A limit of 0 means the sidecar's
// default.
func (c *Client) Events(ctx context.Context, lane string, limit int) (l EventList, err error) {
	return l, c.call(ctx, http.MethodGet, c.at(query("lane", lane, "limit", number(limit)), "events"), nil, &l)
}

// Baselines returns all baselines, requested page by page.
func (c *Client) Baselines(ctx context.Context) (l BaselineList, err error) {
	for {
		var page BaselineList
		if err := c.call(ctx, http.MethodGet, c.at(query("cursor", l.NextCursor), "baselines"), nil, &page); err != nil {
			return BaselineList{}, err
		}
		l.Baselines = append(l.Baselines, page.Baselines...)
		if l.NextCursor = page.NextCursor; l.NextCursor == "" {
			return l, nil
		}
	}
}

// Baseline returns one baseline.
func (c *Client) Baseline(ctx context.Context, name string) (b Baseline, err error) {
	return b, c.call(ctx, http.MethodGet, c.at(nil, "baselines", name), nil, &b)
}

// Comparison compares a lane's live step with the named baseline. An empty name means the lane's default baseline.
func (c *Client) Comparison(ctx context.Context, lane, baseline string) (cmp Comparison, err error) {
	return cmp, c.call(ctx, http.MethodGet, c.at(query("lane", lane, "baseline", baseline), "comparison"), nil, &cmp)
}

// SaveBaseline imports a baseline and returns it as it was stored.
func (c *Client) SaveBaseline(ctx context.Context, b Baseline) (saved Baseline, err error) {
	return saved, c.call(ctx, http.MethodPost, c.at(nil, "baselines"), b, &saved)
}

// ImportCSV imports a baseline in the format of the recorded tables.
func (c *Client) ImportCSV(ctx context.Context, name string, table io.Reader) (saved Baseline, err error) {
	return saved, c.answer(ctx, http.MethodPost, c.at(query("name", name), "baselines"), "text/csv", table, &saved)
}

// ImportResults imports another load generator's results in JSON. run is the mode of the measurement. With merge, the
// rows are added to the imported baseline of that name.
func (c *Client) ImportResults(ctx context.Context, name string, run ModeState, merge bool,
	results io.Reader,
) (saved Baseline, err error) {
	q := query("name", name, "mode", string(run.Mode), "speculation", string(run.Speculation), "merge",
		strconv.FormatBool(merge))
	return saved, c.answer(ctx, http.MethodPost, c.at(q, "baselines"), "application/json", results, &saved)
}

// DeleteBaseline deletes an imported baseline and returns the first page of the remaining ones.
func (c *Client) DeleteBaseline(ctx context.Context, name string) (l BaselineList, err error) {
	return l, c.call(ctx, http.MethodDelete, c.at(nil, "baselines", name), nil, &l)
}

// Simulations returns the limits of simulations, and the list of the stored ones.
func (c *Client) Simulations(ctx context.Context) (l SimulationList, err error) {
	return l, c.call(ctx, http.MethodGet, c.at(nil, "simulations"), nil, &l)
}

// StartSimulation starts a simulation of a cluster. It is cancelled unless [Client.Simulation] is called every few
// seconds.
func (c *Client) StartSimulation(ctx context.Context, req SimulationRequest) (r SimulationResult, err error) {
	return r, c.call(ctx, http.MethodPost, c.at(nil, "simulations"), req, &r)
}

// Simulation returns a simulation with its results so far.
func (c *Client) Simulation(ctx context.Context, id string) (r SimulationResult, err error) {
	return r, c.call(ctx, http.MethodGet, c.at(nil, "simulations", id), nil, &r)
}

// CancelSimulation ends a simulation and returns its results so far.
func (c *Client) CancelSimulation(ctx context.Context, id string) (r SimulationResult, err error) {
	return r, c.call(ctx, http.MethodDelete, c.at(nil, "simulations", id), nil, &r)
}

// Sweeps returns the limits of trials, sweeps and capacity searches, and the list of the stored ones. In this and the
// following calls, a sweep is any of the three kinds.
func (c *Client) Sweeps(ctx context.Context) (l SweepList, err error) {
	return l, c.call(ctx, http.MethodGet, c.at(nil, "sweeps"), nil, &l)
}

// Runs returns the history of a name, or of all names where it is empty.
func (c *Client) Runs(ctx context.Context, name string) (h RunHistory, err error) {
	return h, c.call(ctx, http.MethodGet, c.at(url.Values{"name": {name}}, "runs"), nil, &h)
}

// AcceptRun sets whether later runs are compared with a run of the history. The error is an [ErrNotFound] without it.
func (c *Client) AcceptRun(ctx context.Context, id string, p RunPatch) (r RunRecord, err error) {
	return r, c.call(ctx, http.MethodPatch, c.at(nil, "runs", id), p, &r)
}

// StartSweep begins a sweep on a lane. The error is an [ErrConflict] while another sweep is in progress.
func (c *Client) StartSweep(ctx context.Context, lane string, req SweepRequest) (s Sweep, err error) {
	return s, c.call(ctx, http.MethodPost, c.at(laneQuery(lane), "sweeps"), req, &s)
}

// SweepOutlook returns the difference that a sweep would be able to find. It starts nothing.
func (c *Client) SweepOutlook(ctx context.Context, lane string, req SweepRequest) (o SweepOutlook, err error) {
	return o, c.call(ctx, http.MethodPost, c.at(laneQuery(lane), "sweeps", "outlook"), req, &o)
}

// PreviewTraffic returns what a lane's traffic would be with the changes of the request. It sends none. The error is an
// [ErrConflict] while the workload runs.
func (c *Client) PreviewTraffic(
	ctx context.Context, lane string, req TrafficPreviewRequest,
) (p TrafficPreview, err error) {
	return p, c.call(ctx, http.MethodPost, c.at(laneQuery(lane), "traffic", "preview"), req, &p)
}

// Sweep returns a sweep with its measurements so far.
func (c *Client) Sweep(ctx context.Context, id string) (s Sweep, err error) {
	return s, c.call(ctx, http.MethodGet, c.at(nil, "sweeps", id), nil, &s)
}

// PatchSweep pauses, resumes or cancels a sweep. The error is an [ErrConflict] after the sweep has ended.
func (c *Client) PatchSweep(ctx context.Context, id string, p SweepPatch) (s Sweep, err error) {
	return s, c.call(ctx, http.MethodPatch, c.at(nil, "sweeps", id), p, &s)
}

// DeleteSweep deletes a sweep and returns the remaining ones. The error is an [ErrConflict] until the sweep has ended.
func (c *Client) DeleteSweep(ctx context.Context, id string) (l SweepList, err error) {
	return l, c.call(ctx, http.MethodDelete, c.at(nil, "sweeps", id), nil, &l)
}

// SweepBaseline stores a sweep's measurements as a baseline, and returns the stored baseline.
func (c *Client) SweepBaseline(ctx context.Context, id string, req SweepBaselineRequest) (b Baseline, err error) {
	return b, c.call(ctx, http.MethodPost, c.at(nil, "sweeps", id, "baseline"), req, &b)
}

// SweepSeconds writes the cluster's metrics in each second of each counted span of a sweep, as CSV. After an error w
// may contain a part of it.
func (c *Client) SweepSeconds(ctx context.Context, w io.Writer, id string) error {
	return c.download(ctx, w, c.at(nil, "sweeps", id, "seconds.csv"), "text/csv")
}

// SweepReport writes the report of a sweep, also while it is in progress. After an error w may contain a part of it.
func (c *Client) SweepReport(ctx context.Context, w io.Writer, id string, f ReportFormat) error {
	return c.download(ctx, w, c.at(nil, "sweeps", id, "report."+string(f)), f.mediaType())
}

// Report writes the report that compares b with a. After an error w may contain a part of it.
func (c *Client) Report(ctx context.Context, w io.Writer, a, b ReportSide, f ReportFormat) error {
	v := query("a", a.Baseline, "a_arm", a.Arm, "a_mode", string(a.Mode), "a_speculation", string(a.Speculation),
		"b", b.Baseline, "b_arm", b.Arm, "b_mode", string(b.Mode), "b_speculation", string(b.Speculation))
	return c.download(ctx, w, c.at(v, "report."+string(f)), f.mediaType())
}

// Settings returns the settings in force.
func (c *Client) Settings(ctx context.Context) (s Settings, err error) {
	return s, c.call(ctx, http.MethodGet, c.at(nil, "settings"), nil, &s)
}

// PatchSettings changes settings and returns the settings in force after the change.
func (c *Client) PatchSettings(ctx context.Context, p SettingsPatch) (s Settings, err error) {
	return s, c.call(ctx, http.MethodPatch, c.at(nil, "settings"), p, &s)
}

// Forward sends the call of another program to the sidecar, with body in place of its body. The path of the call is
// relative to [Prefix]. Of its headers, only the content type and a request for events ([WantsEvents]) are kept. The
// answer is JSON, CSV, a report in the format of the path, or a stream of events. The caller closes its body.
func (c *Client) Forward(call *http.Request, body io.Reader) (*http.Response, error) {
	u := c.base.JoinPath(Prefix, call.URL.EscapedPath())
	u.RawQuery = call.URL.RawQuery
	req, err := c.request(call.Context(), call.Method, u, call.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, err
	}
	if WantsEvents(call) {
		req.Header.Set("Accept", EventStream)
	}
	res, err := c.do(req)
	if err != nil || isType(res, "text/csv") || WantsEvents(call) && isType(res, EventStream) {
		return res, err
	}
	if f, ok := reportFormat(call.URL.Path); ok && isType(res, f.mediaType()) {
		return res, nil
	}
	if err := checkType(res, "application/json"); err != nil {
		res.Body.Close()
		return nil, err
	}
	return res, nil
}

// download copies an answer of the media type want to w.
func (c *Client) download(ctx context.Context, w io.Writer, u *url.URL, want string) error {
	res, err := c.send(ctx, http.MethodGet, u, "", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := checkType(res, want); err != nil {
		return err
	}
	_, err = io.Copy(w, res.Body)
	return err
}

// at returns the URL of a call, or nil if a part of the path is not a segment, so that nothing has this path.
func (c *Client) at(query url.Values, path ...string) *url.URL {
	u := c.base.JoinPath(Prefix)
	for _, part := range path {
		if part == "" || part == "." || part == ".." {
			return nil
		}
		u = u.JoinPath(url.PathEscape(part))
	}
	u.RawQuery = query.Encode()
	return u
}

func laneQuery(lane string) url.Values { return query("lane", lane) }

// query builds a query, without empty values.
func query(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

// number formats a number; 0 is empty, because queries omit it.
func number[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// call sends in as JSON, unless it is nil, and reads the answer into out.
func (c *Client) call(ctx context.Context, method string, u *url.URL, in, out any) error {
	if in == nil {
		return c.answer(ctx, method, u, "", nil, out)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.answer(ctx, method, u, "application/json", bytes.NewReader(body), out)
}

func (c *Client) answer(ctx context.Context, method string, u *url.URL, contentType string, body io.Reader,
	out any,
) error {
	res, err := c.send(ctx, method, u, contentType, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := checkType(res, "application/json"); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(PresentNames(text), out); err != nil {
		return fmt.Errorf("the response of %s is not what this version of the client expects: %w", u.Redacted(), err)
	}
	return nil
}

// checkType returns an error for an answer of another media type, which is not from a load generator.
func checkType(res *http.Response, want string) error {
	if isType(res, want) {
		return nil
	}
	return fmt.Errorf("%s answered with %q, which is not a load generator's response: check the URL",
		res.Request.URL.Redacted(), res.Header.Get("Content-Type"))
}

// send makes a call and returns the result of do.
func (c *Client) send(ctx context.Context, method string, u *url.URL, contentType string,
	body io.Reader,
) (*http.Response, error) {
	req, err := c.request(ctx, method, u, contentType, body)
	if err != nil {
		return nil, err
	}
	return c.do(req)
}

func (c *Client) request(ctx context.Context, method string, u *url.URL, contentType string,
	body io.Reader,
) (*http.Request, error) {
	if u == nil {
		return nil, fmt.Errorf("%w: an id must not be empty, a dot or two dots", ErrNotFound)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header = c.header()
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return req, nil
}

// do returns the response, whose body the caller closes, if its status is 2xx.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, refusal(res)
}

func (c *Client) header() http.Header {
	h := http.Header{}
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	if c.login != "" {
		h.Set(UserHeader, c.login)
	}
	return h
}

// refusal returns the error of an unsuccessful response: a [*FieldError] or a [*ProblemError].
func refusal(res *http.Response) error {
	p := Problem{}
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem)) // a truncated document does not parse
	if !isType(res, "application/problem+json") || json.Unmarshal(text, &p) != nil {
		p = unknownProblem(res)
	}
	if p.Status = res.StatusCode; p.Status == http.StatusUnprocessableEntity && p.Field != "" {
		return &FieldError{Field: p.Field, Value: p.Value, Allowed: p.Allowed}
	}
	return &ProblemError{Problem: p}
}

// unknownProblem describes an unsuccessful response that does not come from the sidecar.
func unknownProblem(res *http.Response) Problem {
	p := Problem{Type: "about:blank", Title: http.StatusText(res.StatusCode)}
	p.Detail = fmt.Sprintf("%s answered %s, which is not a load generator's response: check the URL and any proxy in "+
		"between", res.Request.URL.Redacted(), res.Status)
	if to := res.Header.Get("Location"); res.StatusCode/100 == 3 && to != "" {
		p.Detail = fmt.Sprintf("%s redirects to %q; redirects are not followed: use that URL", res.Request.URL.Redacted(), to)
	}
	return p
}

func isType(res *http.Response, want string) bool {
	got, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)) && got == want
}
