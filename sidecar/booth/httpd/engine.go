package httpd

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
)

// WorkerHeader is a response header of every worker's port. Its value is the worker's host and port.
const WorkerHeader = "X-Worker"

// Worker returns the handler of the port of one worker, numbered from 0: its metrics, and the paths of an engine that a
// router other than Dynamo's requires. A request there goes to this worker. Unlike Dynamo, an engine ignores fields
// that it does not know.
func (s *Server) Worker(i int) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Worker(i))
	mux.Handle("POST /v1/chat/completions", s.up(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := readChat(w, r, false)
		if err == nil {
			q.NVExt = &nvext{Instance: new(instanceID(s.snapshot().Workers[i].ID))}
		}
		s.complete(w, r, q, err)
	})))
	mux.Handle("GET /v1/models", s.up(http.HandlerFunc(s.models)))
	mux.Handle("GET /health", s.up(http.HandlerFunc(live)))
	mux.Handle("GET /server_info", s.up(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"served_model_name": s.options.Cluster.Profile.Model})
	})))
	mux.Handle("POST /tokenize", s.up(http.HandlerFunc(s.tokenize)))
	return s.running(named(mux))
}

// named sets the header that names the worker.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			w.Header().Set(WorkerHeader, address.String())
		}
		next.ServeHTTP(w, r)
	})
}

// tokenize returns the ids of a prompt's tokens, as the path of the same name of vLLM does for messages.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r, maxChatBody)
	var q chatRequest
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		s.explain(unreadable("%v", err)).write(w)
		return
	}
	parts, total := s.prompts.encode(q.conversation())
	writeJSON(w, http.StatusOK, struct {
		Count  int      `json:"count"`
		Tokens []uint32 `json:"tokens"`
	}{total, slices.Concat(parts...)})
}
