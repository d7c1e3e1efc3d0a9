package httpd

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"kvbooth/sidecar/sim"
)

// endpoint is a path of a port. docs/simulated-api.md lists the endpoints, which a test checks.
type endpoint struct {
	path        string
	methods     methods
	wrap        func(http.Handler) http.Handler // nil for none
	description string
}

func (s *Server) endpoints() []endpoint {
	return append([]endpoint{
		{"/v1/chat/completions", methods{http.MethodPost: s.chat}, s.up, "Chat completion, streamed or not."},
		{"/v1/models", methods{http.MethodGet: s.models}, s.up, "Lists the model."},
		{
			"/v1/models/{id...}",
			methods{http.MethodGet: s.model},
			s.up,
			"The model by its ID; 404 for any other.",
		},
		{
			"/health",
			methods{http.MethodGet: s.health},
			nil,
			"The workers with their IDs; 503 while the cluster restarts.",
		},
		{"/live", methods{http.MethodGet: live}, s.up, "Whether the frontend is running."},
		{
			"/metrics",
			methods{http.MethodGet: s.metrics.Frontend().ServeHTTP},
			s.up,
			"The frontend's and the router's metrics.",
		},
	}, s.admin()...)
}

// routes returns the handler of a port with the given endpoints.
func (s *Server) routes(endpoints []endpoint) http.Handler {
	mux := http.NewServeMux()
	for _, e := range endpoints {
		var h http.Handler = e.methods
		if e.wrap != nil {
			h = e.wrap(h)
		}
		mux.Handle(e.path, h)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		newProblem(http.StatusNotFound, kindNotFound, "Route not found: %.20s %.200s", r.Method, r.URL.Path).write(w)
	})
	return s.running(mux)
}

// methods maps HTTP methods to the handlers of one path.
type methods map[string]http.HandlerFunc

// ServeHTTP calls the handler of the method; GET also serves HEAD.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if h, ok := m[method]; ok {
		h(w, r)
		return
	}
	for method := range m {
		w.Header().Add("Allow", method)
	}
	w.WriteHeader(http.StatusMethodNotAllowed) // without a body, like Dynamo
}

// closingGrace is the time for writing a response after the server has closed.
const closingGrace = time.Second

// running counts requests in progress, so that Close can wait for them. It limits the time of clients that do not
// read.
func (s *Server) running(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			s.explain(errClosing).write(w)
			return
		}
		defer s.leave()
		limited := make(chan struct{})
		stop := context.AfterFunc(s.ctx, func() {
			defer close(limited)
			limitTime(w)
		})
		defer func() {
			if !stop() {
				<-limited
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// limitTime sets read and write deadlines after the grace period. Responses without a connection, as in tests, have no
// deadlines.
func limitTime(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	deadline := time.Now().Add(closingGrace)
	_ = control.SetReadDeadline(deadline)
	_ = control.SetWriteDeadline(deadline)
}

// up rejects requests while the cluster restarts.
func (s *Server) up(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := s.readyIn(); wait > 0 {
			s.explain(sim.ErrRestarting).write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// servedModel is a model as Dynamo lists it.
type servedModel struct {
	ID            string `json:"id"`
	Object        string `json:"object"`
	Created       int64  `json:"created"`
	OwnedBy       string `json:"owned_by"`
	ContextWindow int    `json:"context_window"` // tokens of prompt and answer
}

func (s *Server) served() servedModel {
	p := s.options.Cluster.Profile
	return servedModel{
		ID: p.Model, Object: "model", Created: s.clock.began.Unix(), OwnedBy: "nvidia", ContextWindow: p.KV.Tokens(),
	}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		Object string        `json:"object"`
		Data   []servedModel `json:"data"`
	}{"list", []servedModel{s.served()}})
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	m := s.served()
	if r.PathValue("id") != m.ID {
		newProblem(http.StatusNotFound, kindNotFound, "Model not found").write(w)
		return
	}
	writeJSON(w, http.StatusOK, m)
}

func live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "live", "message": "Service is live"})
}

// health is Dynamo's document of discovered instances.
type health struct {
	Status    string     `json:"status"`
	Message   string     `json:"message,omitempty"` // if unhealthy
	Endpoints []string   `json:"endpoints"`
	Instances []instance `json:"instances"`
}

// instance is the endpoint of a worker.
type instance struct {
	Component  string            `json:"component"`
	Endpoint   string            `json:"endpoint"`
	Namespace  string            `json:"namespace"`
	InstanceID sim.WorkerID      `json:"instance_id"` // a JSON number that exceeds a float64
	Transport  map[string]string `json:"transport"`
	DeviceType string            `json:"device_type"`
	Codec      string            `json:"request_plane_codec"`
}

// health serves /health. The transport of an instance is not a real address, because simulated workers do not listen.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	snapshot := s.snapshot()
	h := health{Status: "healthy", Endpoints: []string{}, Instances: []instance{}}
	if !snapshot.State.Ready {
		wait := s.readyIn()
		h.Status, h.Message = "unhealthy", fmt.Sprintf("%v, ready in %.1f s", sim.ErrRestarting, wait.Seconds())
		w.Header().Set("Retry-After", retrySeconds(wait))
		writeJSON(w, http.StatusServiceUnavailable, h)
		return
	}
	for _, worker := range snapshot.Workers {
		if !worker.Ready {
			continue
		}
		h.Endpoints = []string{"dyn://dynamo.backend.generate"}
		h.Instances = append(h.Instances, instance{
			Component: "backend", Endpoint: "generate", Namespace: "dynamo", InstanceID: worker.ID,
			Transport:  map[string]string{"tcp": fmt.Sprintf("simulated/%x/dynamo/backend/generate", uint64(worker.ID))},
			DeviceType: "cuda", Codec: "msgpack",
		})
	}
	writeJSON(w, http.StatusOK, h)
}
