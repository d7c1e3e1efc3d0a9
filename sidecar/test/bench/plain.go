//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// startRate is the number of streams that begin per second.
func startRate(streams int) int { return max(1, streams/10) }

// begins returns how long it takes until all streams have begun.
func begins(streams int) time.Duration {
	return time.Duration(streams) * time.Second / time.Duration(startRate(streams))
}

// plainLoop requests answers in concurrent streams through go-openai and reads them. It keeps no history, stores
// nothing and measures nothing.
func plainLoop(ctx context.Context, target string, streams int) error {
	config := openai.DefaultConfig("")
	config.BaseURL = target + "/v1"
	config.HTTPClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}}
	client := openai.NewClientWithConfig(config)
	loops, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			err := pause(loops, time.Duration(i)*time.Second/time.Duration(startRate(streams)))
			for err == nil {
				err = readOne(loops, client)
			}
			stop(err) // the first error ends all streams and the row
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(loops)
}

func readOne(ctx context.Context, client *openai.Client) error {
	s, err := client.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model: "bench", Stream: true, Messages: []openai.ChatCompletionMessage{{
			Role: openai.ChatMessageRoleUser, Content: "Hello.",
		}},
		MaxTokens: int(meanTokens * (1 + .15*rand.NormFloat64())), //nolint:staticcheck // the server reads this one
	})
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		switch _, err := s.Recv(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
