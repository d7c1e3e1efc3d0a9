import type { components } from './schema';

type Schemas = components['schemas'];

/** Everything that a screen shows of the present moment, once a second. */
export type Snapshot = Schemas['Snapshot'];
/** That a snapshot comes from a recording. */
export type Replay = Schemas['Replay'];
/** One workload's part of a snapshot. */
export type LaneSnapshot = Schemas['LaneSnapshot'];
/** Who asks the follow-up questions. */
export type QuestionerKind = Schemas['QuestionerKind'];
/** A workload's run state. */
export type State = Schemas['State'];
/** A routing mode with the speculation that goes with it. */
export type ModeState = Schemas['ModeState'];
/** A mode change in progress, or the last one if it failed. */
export type ModeChange = Schemas['ModeChange'];
/** The live step beside a baseline at the same concurrency. */
export type Comparison = Schemas['Comparison'];
/** How a live value stands to a baseline's. */
export type Improvement = Schemas['Improvement'];
/** Whether the load generator itself can be trusted. */
export type ClientHealth = Schemas['ClientHealth'];
export type ClientError = Schemas['ClientError'];
/** A load generator that holds conversations for the one that is asked. */
export type Member = Schemas['Member'];
/** What a member is given. */
export type MemberState = Schemas['MemberState'];
/** One mode of a baseline at the live concurrency. */
export type Column = Schemas['Column'];
/** One value of a baseline, and how it was found. */
export type LookedUp = Schemas['LookedUp'];
/** The settings that an administrator changes while it runs. */
export type Settings = Schemas['Settings'];
/** Those settings that are to change. */
export type SettingsPatch = Schemas['SettingsPatch'];
/** The range and the increment of the concurrency slider. */
export type Slider = Schemas['Slider'];
/** A routing mode of the serving cluster. */
export type Mode = Schemas['Mode'];
/** The kind of speculative decoding that serves. */
export type Speculation = Schemas['Speculation'];
/** One way in which the live run is unlike a baseline's. */
export type Difference = Schemas['Difference'];
/** Starts the workload, or sets the concurrency of a running one. */
export type StartRequest = Schemas['StartRequest'];
/** Those parts of the workload that are to change. */
export type WorkloadPatch = Schemas['WorkloadPatch'];
/** Asks for a mode change, or is the operator's word that one is done. */
export type ModeRequest = Schemas['ModeRequest'];
/** A recorded result: per level and mode, with its deployment and workload. */
export type Baseline = Schemas['Baseline'];
/** What one mode of a baseline sustains under the SLOs. */
export type Sustained = Schemas['Sustained'];
/** What serves, with the versions and settings of its stack. */
export type Deployment = Schemas['Deployment'];
/** A change of state: what, when, by whom. */
export type BoothEvent = Schemas['Event'];
/** What an event is about. */
export type EventKind = Schemas['EventKind'];
/** How a turn failed. */
export type ErrorClass = Schemas['ErrorClass'];
/** Where a conversation stands. */
export type ConversationStatus = Schemas['ConversationStatus'];
/** A conversation: a row of the list, or with its turns in its detail. */
export type Conversation = Schemas['Conversation'];
/** A text that conversations begin with. */
export type Starter = Schemas['Starter'];
/** One page of conversations, newest first. */
export type ConversationList = Schemas['ConversationList'];
/** What a lane's snapshots said in the last ten minutes, oldest first. */
export type History = Schemas['History'];
/** What a lane's snapshot said of one second. */
export type HistoryPoint = Schemas['HistoryPoint'];
/** The newest decisions of a target's router, newest first. */
export type DecisionList = Schemas['DecisionList'];
/** Why a router sent one request where it did. */
export type RoutingDecision = Schemas['RoutingDecision'];
/** One worker as the router saw it for a request. */
export type RoutingCandidate = Schemas['RoutingCandidate'];
/** One request and its answer. */
export type Turn = Schemas['Turn'];
/** A turn that is still streaming. */
export type LiveTurn = Schemas['LiveTurn'];
/** What is known of the serving cluster. */
export type Cluster = Schemas['Cluster'];
/** One engine of the cluster. */
export type Worker = Schemas['Worker'];
/** One GPU of a worker. */
export type GPU = Schemas['GPU'];
/** The GPUs of a host of which nothing tells the worker that uses them. */
export type HostGPUs = Schemas['HostGPUs'];
/** One level of a baseline in one mode. */
export type BaselineRow = Schemas['BaselineRow'];
/** What the load generator says of itself and its configuration. */
export type Status = Schemas['Status'];
/** What the one who looks may do outside Grafana, by the session that the browser's cookie carries. */
export type Session = Schemas['Session'];
/** A what-if question: a workload on a simulated cluster. What is left out is as recorded, on the profile that it names. */
export type SimulationRequest = Schemas['SimulationRequest'];
/** What can be simulated, and what has been. */
export type SimulationList = Schemas['SimulationList'];
/** A deployment that can be simulated. */
export type SimulationProfile = Schemas['SimulationProfile'];
/** A question that many ask. */
export type SimulationPreset = Schemas['SimulationPreset'];
/** What a number of a question may be. */
export type SimulationLimit = Schemas['SimulationLimit'];
/** A simulation with what it has computed so far. */
export type SimulationResult = Schemas['SimulationResult'];
/** What came of one level in one mode, of the seeds computed so far. */
export type SimulationPoint = Schemas['SimulationPoint'];
/** What is read of a point. */
export type SimulationFigures = Schemas['SimulationFigures'];
/** The mean over the seeds, with the least and the largest value. */
export type SimulationFigure = Schemas['SimulationFigure'];
/** What a sweep asks: a trial, a sweep of levels, or a capacity search. */
export type SweepKind = Schemas['SweepKind'];
/** Asks for a sweep; what is left out has the default that the list of sweeps tells. */
export type SweepRequest = Schemas['SweepRequest'];
/** The order in which a sweep of levels runs its spans. */
export type SweepOrder = Schemas['SweepOrder'];
/** What can be asked, and what has been. */
export type SweepList = Schemas['SweepList'];
/** Where a sweep stands. */
export type SweepState = Schemas['SweepState'];
/** A sweep without its spans. */
export type SweepSummary = Schemas['SweepSummary'];
/** A sweep with all that it has measured so far. */
export type Sweep = Schemas['Sweep'];
/** The span under way. */
export type SweepNow = Schemas['SweepNow'];
/** A span that has ended. */
export type SweepSpan = Schemas['SweepSpan'];
/** What a trial can find that is not begun. */
export type SweepOutlook = Schemas['SweepOutlook'];
/** How a trial stands. */
export type TrialState = Schemas['TrialState'];
/** What a trial knows of one metric. */
export type TrialDifference = Schemas['TrialDifference'];
/** What a capacity search has found. */
export type Capacity = Schemas['Capacity'];
/** How many conversations a mode sustains within the SLOs. */
export type ModeCapacity = Schemas['ModeCapacity'];
/** Makes a baseline of a sweep's rows. */
export type SweepBaselineRequest = Schemas['SweepBaselineRequest'];

/** Two lanes that run the same conversations, compared turn by turn: differences are those of b less a. */
export type Twin = Schemas['Twin'];
/** One of the two lanes. */
export type TwinSide = Schemas['TwinSide'];
/** How the modes are dealt out to the two lanes. */
export type TwinArrangement = Schemas['TwinArrangement'];
/** Whether a difference between the lanes can be laid to the mode. */
export type TwinEvidence = Schemas['TwinEvidence'];
/** A metric of the turns that ended well on both lanes. */
export type PairedMetric = Schemas['PairedMetric'];
/** One conversation for the eye, sent to both lanes turn by turn. */
export type Showcase = Schemas['Showcase'];
/** The answer of one lane to the showcase's turn under way. */
export type ShowcaseSide = Schemas['ShowcaseSide'];
/** What other routers would have hit on a lane's traffic. */
export type Shadow = Schemas['Shadow'];
/** What can be said of a policy: hits and balance, not latency. */
export type ShadowFigures = Schemas['ShadowFigures'];
/** How often our account of the router chose the worker that the router chose. */
export type ShadowChoices = Schemas['ShadowChoices'];

/** Who looks at the screen, and what they may do. */
export interface Me {
  login: string;
  /** Grafana's role, empty outside Grafana. */
  role: string;
  canOperate: boolean;
  canConfigure: boolean;
  /** A recording is played, in which nobody can change anything. */
  replay?: boolean;
  /** Whether anybody has said where the load generator is; a page that it serves itself knows. */
  configured: boolean;
}

/** What is known of the present moment. */
export type LiveState =
  | { status: 'loading' }
  | {
      status: 'live';
      snapshot: Snapshot;
      /** When it came, by the browser's clock, in milliseconds since 1970. */
      receivedAt: number;
    }
  | {
      status: 'lost';
      /** When it was lost, in milliseconds since 1970. */
      since: number;
      /** Why, in words that say what to do. */
      problem: string;
      /** The last snapshot, to be shown as old or not at all. */
      last?: Snapshot;
    };
