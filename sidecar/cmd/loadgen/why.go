package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
)

// whyTimeout is the time for a request to the load generator.
const whyTimeout = 10 * time.Second

// why prints what became of the prompt tokens of a running load generator. The error is a notStarted.
func why(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	q := conf.Why
	client, err := api.NewClient(&http.Client{Timeout: whyTimeout}, q.From, string(conf.Token))
	if err != nil {
		return notStarted{err}
	}
	s, err := client.Shadow(ctx, q.Lane)
	if err != nil {
		return notStarted{api.Refuse("from", q.From, fmt.Sprintf("a running load generator, with its token in "+
			"LOADGEN_TOKEN if it has one; %v", err))}
	}
	if len(s.Causes) == 0 {
		reason := s.Message
		if s.Source != api.ShadowNone {
			reason = "no turn of the last 60 s reported its worker and its cached tokens"
		}
		return notStarted{fmt.Errorf("not known: %s", reason)}
	}
	if q.Format == "json" {
		return writeJSON(stdout, struct {
			Program string `json:"program"`
			*api.Shadow
		}{api.Program(), &s})
	}
	printWhy(stdout, &s)
	return nil
}

func printWhy(stdout io.Writer, s *api.Shadow) {
	if s.Arm != "" {
		fmt.Fprintf(stdout, "Arm in force: %s\n", s.Arm)
	}
	fmt.Fprintf(stdout, "%s prompt tokens of %s requests in the last %s s\n", api.Count(s.PromptTokens),
		api.Count(s.Requests), api.Number(s.Seconds, 0))
	for _, c := range s.Causes {
		fmt.Fprintf(stdout, "  %8s  %-11s %s\n", api.Percent(c.Share), c.Kind, c.Text)
		if c.Remedy != "" {
			fmt.Fprintf(stdout, "  %s%s\n", strings.Repeat(" ", 22), c.Remedy)
		}
	}
	for _, p := range s.Policies {
		if p.Policy == "best_placement" && p.Figures.HitRatio != nil {
			fmt.Fprintf(stdout, "The best placement would have found %s.\n", api.Percent(*p.Figures.HitRatio))
		}
	}
	if s.Withheld != "" {
		fmt.Fprintf(stdout, "Not reliable: %s.\n", s.Withheld)
	}
	if s.Work != nil && s.Work.Text != "" {
		fmt.Fprintf(stdout, "Work: %s; %s.\n", s.Work.Text, s.Work.Remedy)
	}
	sum := 0.
	for _, p := range s.TTFT {
		sum += p.Seconds
	}
	if len(s.TTFT) > 0 {
		fmt.Fprintf(stdout, "Mean TTFT %s\n", api.Milliseconds(sum))
	}
	for _, p := range s.TTFT {
		fmt.Fprintf(stdout, "  %11s  %-8s %s\n", api.Milliseconds(p.Seconds), p.Name, p.Text)
	}
}
