/**
 * The words of the explorer. A *unit* is what one connection sends at once: a simple query, or an
 * extended-protocol cycle up to its Sync. A *step* is a unit, or one half of it, that the scheduler
 * let pass. A *schedule* is the order of steps of one run. A *class* is a set of schedules that
 * cannot differ in what anybody sees.
 */
import type { Facts } from './facts.ts'

/** What may be done next: let one connection of one flow go on, or end the flow. */
export interface Choice {
  /** Index of the flow, in the order in which the flows were given. */
  readonly flow: number
  /** Which connection of the flow, in the order in which it opened them. */
  readonly lane: number
  /**
   * `go` lets the unit pass, or sends the withheld commit of one that was executed.
   * `crash` ends the flow instead: its connections are cut before the unit reaches the server.
   * `lose-answer` lets the unit pass and cuts the connections before the answer arrives.
   * `victim` names who dies of a deadlock that has been closed.
   */
  readonly action: 'go' | 'crash' | 'lose-answer' | 'victim'
}

/** The part of a unit that a step is: an autocommit statement is executed and committed in two. */
export type Half = 'whole' | 'execute' | 'commit'

/** Transaction state as the server reports it: idle, in a transaction, in a failed one. */
export type TransactionState = 'I' | 'T' | 'E'

/** How an object was touched, from weak to strong; which pairs exclude each other is `footprint.ts`. */
export type TouchMode =
  /** A plain read: sees what is committed, waits for nobody. */
  | 'read'
  /** Locks rows against deletion only: what a foreign key check does. */
  | 'key-share'
  /** A locking read, an UPDATE, a DELETE, or a write whose kind is not known. Reads as well. */
  | 'lock'
  /** Adds rows, with every unique key filled by a sequence, so that two of them do not meet. */
  | 'append'
  /** Adds rows that may meet another's by a unique key or an exclusion constraint. */
  | 'insert'
  /** An advisory lock, or a relation lock that excludes others (LOCK TABLE, DDL). */
  | 'exclusive'
  /** Asked for and not waited for: SKIP LOCKED, NOWAIT, pg_try_advisory_lock. */
  | 'attempt'

/** What a step did to one object: a relation, an advisory key, a row if its key is known. */
export interface Touch {
  /** `public.seats`, `public.seats#id=1`, `advisory 0:42`. Equal or prefix before `#` = may overlap. */
  readonly object: string
  readonly mode: TouchMode
}

/**
 * What a step can have in common with steps of other flows. `opaque` means unknown: it depends on
 * everything.
 */
export interface Footprint {
  readonly opaque: boolean
  /** What the step itself read, locked or wrote, under its own snapshot. */
  readonly touches: readonly Touch[]
  /** Set where the step ends a transaction or a part of one (ROLLBACK TO). */
  readonly ends?: {
    readonly how: 'commit' | 'rollback'
    /** What becomes visible to others (nothing on rollback). */
    readonly writes: readonly string[]
    /** What others may be waiting for and now get. */
    readonly locks: readonly string[]
  }
  /**
   * What the server runs in it one after the other, if it is more than one statement: in a function, a trigger, a
   * pipeline. Others may act in between, and no schedule does.
   */
  readonly parts?: readonly Footprint[]
  /** Under a snapshot of the transaction (REPEATABLE READ, SERIALIZABLE), or of the statement. */
  readonly isolation: 'read committed' | 'repeatable read' | 'serializable'
}

/** What was seen in the answer, shortened for a person. */
export interface Answer {
  /** Command tag, `INSERT 0 1`. */
  readonly tag?: string
  readonly columns?: readonly string[]
  /** The first rows as text; `rowCount` says how many there were. */
  readonly rows?: readonly (readonly (string | null)[])[]
  readonly rowCount: number
  readonly error?: { readonly sqlstate: string; readonly message: string }
}

/** A line of the code under test. */
export interface Place {
  readonly file: string
  readonly line: number
}

/** One step of a run, as it happened. */
export interface Step {
  /** Place in the run, from 0. */
  readonly index: number
  readonly flow: number
  readonly lane: number
  readonly choice: Choice
  readonly half: Half
  /** Statements of the unit as sent; one, unless a simple query held several. */
  readonly statements: readonly string[]
  /** Parameters as text, `null` for NULL, shown in reports on the user's own machine only. */
  readonly parameters: readonly (string | null)[]
  /** The line of the code under test that sent it, if it is known. Looked for in replays only: it costs. */
  readonly from?: Place
  readonly before: TransactionState
  readonly after: TransactionState
  /** Flows whose connections it had to wait for, when it did; empty otherwise. */
  readonly waitedFor: readonly number[]
  /** Index of the step after which a waiting one went on; undefined if it never waited. */
  readonly resumedAfter?: number
  readonly answer: Answer
  readonly footprint: Footprint
  /** Backend process id, for the record; never part of a comparison. */
  readonly pid: number
}

/** A unit that waits at the gate, or a withheld commit: what the scheduler may choose from. */
export interface Pending {
  readonly choice: Choice
  readonly half: Half
  readonly statements: readonly string[]
  readonly parameters: readonly (string | null)[]
  /** Distinguishes statements across runs: text, half and place in the flow, no values of chance. */
  readonly fingerprint: string
}

/** The moment before a step: everything is at rest. */
export interface Decision {
  readonly index: number
  /** Never empty. Ordered by flow, then lane. */
  readonly enabled: readonly Pending[]
  /** Flows whose statement waits for another flow's lock at this moment. */
  readonly blocked: readonly number[]
}

/**
 * What a flow's answer or error says: it did what was asked; it said no, and left nothing behind; or something went
 * wrong in it. To refuse is safe in any order. Where a flow fails as in no serial order, that is a finding.
 */
export type Said = 'accepted' | 'refused' | 'failed'

/** How a flow ended. */
export type FlowOutcome =
  | { readonly kind: 'returned'; readonly value: string; readonly said?: Said }
  | {
      readonly kind: 'threw'
      readonly name: string
      readonly message: string
      readonly sqlstate?: string
      readonly said?: Said
    }
  | { readonly kind: 'crashed' }
  /** It did not end: the run was given up, `Run.trouble` says why. */
  | { readonly kind: 'unfinished' }

/** What stopped a run from being a verdict about the flows. Never counted as a race. */
export interface Trouble {
  readonly kind:
    | 'hung-flow'
    | 'pool-too-small'
    | 'external-blocker'
    | 'client-timeout'
    | 'step-limit'
    | 'diverged'
    | 'seed-failed'
    | 'connection-lost'
    /** No flow, or only one, sent a statement through its context: nothing can race. */
    | 'nothing-sent'
    /** Every flow goes wrong even alone: nothing can race. */
    | 'always-fails'
    /** The rule is broken without any concurrency: not a race. */
    | 'fails-serially'
    /** A flow went on after it had ended, so that nothing is known about orders of whole flows. */
    | 'outlives-its-end'
    /** What the seed leaves differs from run to run. */
    | 'seed-differs'
    /** A failure was seen and did not come again when its schedule was replayed. */
    | 'not-reproduced'
  /** One sentence for a person, with the next step. */
  readonly message: string
  readonly flow?: number
}

/** Something worth a line in the report that does not stop the run. */
export interface Note {
  readonly kind:
    | 'uncontrolled-wait'
    /** One step runs several statements inside, and others can act between them. */
    | 'several-statements'
    /** The same, and it was to count as one statement. */
    | 'counted-as-one'
    | 'unordered-limit'
    | 'nondeterminism'
    /** Values that are drawn anew in every run, such as ids made by the program: compared by where they stand. */
    | 'chance'
    /** Something in an answer, or a table, that nobody can look into: it was not compared. */
    | 'unseen'
    /** A value can be read in two ways, and by one of them a run is wrong. */
    | 'undecided'
    | 'server-chose-victim'
    /** A deadlock that PostgreSQL resolved. */
    | 'deadlock'
    /** A flow threw in some schedule and in no serial order, and left nothing behind. */
    | 'refused'
    /** Runs that ended as in none of the serial orders that were run, which were not all. */
    | 'unjudged'
    /** Every flow says no even alone. */
    | 'always-refused'
    /** A flow throws in every order, even alone. */
    | 'always-fails'
    /** No flow writes or locks anything. */
    | 'only-reads'
    /** The replay token was made from other code. */
    | 'stale-token'
  readonly message: string
}

/** One finished run. */
export interface Run {
  readonly steps: readonly Step[]
  /** One per step: what could have been chosen there. */
  readonly decisions: readonly Decision[]
  readonly outcomes: readonly FlowOutcome[]
  /**
   * Final rows of every user table and the outcomes, without values of chance; comparable as text. A
   * JSON array: `state`, then one text per flow.
   */
  readonly digest: string
  /** The tables' part of `digest`, without the outcomes. */
  readonly state: string
  /** The same for people: table, columns and rows. */
  readonly tables: readonly FinalTable[]
  /** Message of the user's invariant when it failed. */
  readonly violation?: string
  readonly deadlocks: number
  /** Something happened that no schedule controls, such as a wait for something that is not known. */
  readonly uncontrolled?: string
  readonly trouble?: Trouble
  readonly notes: readonly Note[]
  /** What the search compares; runs of a report have none. */
  readonly facts?: Facts
}

/** Rows of a table at the end of a run, in an order that does not depend on it. */
export interface FinalTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (string | null)[])[]
}

/** A table as the seed left it: what a suggestion has to hold on. */
export interface KnownTable {
  readonly name: string
  readonly columns: readonly KnownColumn[]
  /** Columns of each unique index on all rows. */
  readonly uniques: readonly (readonly string[])[]
  /** As text; undefined if they could not be read, or are too many. */
  readonly rows?: readonly (readonly (string | null)[])[]
}

/** A column, with what is put into it and what it is compared by. */
export interface KnownColumn {
  readonly name: string
  /** PostgreSQL's short name, of a domain the one of its type: `int4`, `_text`; `enum` for all of those. */
  readonly type: string
  /** Texts are equal only if they are written alike. */
  readonly exact: boolean
  /** Part of the primary key. */
  readonly key: boolean
  /** What its DEFAULT fills in, if that is always the same. */
  readonly filled?: string
  /** What its foreign key, if it has one of its own, refers to. */
  readonly refers?: { readonly table: string; readonly column: string }
}

/** Runs one schedule from a fresh seed. The search knows nothing else of PostgreSQL. */
export interface Runner {
  /** Names of the flows, in order. */
  readonly flows: readonly string[]
  /** `decide` is asked when everything is at rest and must answer with one of `decision.enabled`. */
  run(decide: (decision: Decision, steps: readonly Step[]) => Choice, cast?: Cast): Promise<Run>
}

/** Who takes part in a run. */
export interface Cast {
  /** Flows that are not among these are not started; their outcome is `crashed`. */
  readonly only?: readonly number[]
  /** Each begins when the one before it has ended, in the order of `only`. */
  readonly serial?: boolean
  /** Find out which lines the statements are sent from. */
  readonly places?: boolean
}

/** Why a schedule is a failure. */
export interface Failure {
  readonly kind: 'invariant' | 'not-serial' | 'deadlock' | 'crash'
  /** The invariant's message, or which serial results there were and what was found instead. */
  readonly message: string
  readonly run: Run
  /** Digest of each serial order, for the difference that the report shows. */
  readonly serial: readonly { readonly order: readonly number[]; readonly run: Run }[]
  /** Columns that differed between runs of the same schedule and were not compared: `public.t.id`. */
  readonly ignored?: readonly string[]
  /** `r1.…`: replays this schedule. */
  readonly token: string
  /** How often it happened again when it was replayed, and how often it was replayed. */
  readonly reproduced: readonly [number, number]
}

/** What a search found and what it covered. */
export interface Coverage {
  /** Every class was run. */
  readonly exhaustive: boolean
  /** Runs made, serial ones and redundant ones included; repetitions, replays and shrinking not. */
  readonly schedules: number
  /** Classes that were run to their end, each counted once. */
  readonly classes: number
  /** Orders of the steps that the flows have, multiplied out. */
  readonly interleavings: bigint
  /** Whether in any run one flow's transaction was open while another flow made a step. */
  readonly overlapped: boolean
  readonly blockedEpisodes: number
  readonly deadlocks: number
  readonly crashPoints: number
  /** Every class with at most so many preemptions was run; undefined when exhaustive. */
  readonly preemptionBound?: number
  /** For what was drawn at random: a bug of this depth was missed with at most this probability. */
  readonly missBound?: { readonly depth: number; readonly atMost: number }
  readonly milliseconds: number
}

/** What `explore()` resolves to. */
export interface Report {
  readonly name: string
  readonly flows: readonly string[]
  /**
   * `race`: a schedule whose end no serial order gives, and that ended so again when it was replayed. `race-free`: every
   * order that can differ was run. `bounded`: nothing was found, and something was not run or not controlled.
   * `vacuous`: the flows were never under way together, so nothing could be found. `inconclusive`: see `trouble`.
   */
  readonly verdict: 'race' | 'race-free' | 'bounded' | 'vacuous' | 'inconclusive'
  readonly coverage: Coverage
  readonly failure?: Failure
  /** Why it is inconclusive. */
  readonly trouble?: Trouble
  readonly notes: readonly Note[]
  /** The tables before each run, if there is a race. */
  readonly known?: readonly KnownTable[]
  /** Server version, isolation levels seen, for the header of a report. */
  readonly server: string
}

/** How far a search is, told after every run. */
export interface Progress {
  /** What is being run: the serial orders, the search, random orders, or the failure once more. */
  readonly phase: 'learn' | 'serial' | 'search' | 'random' | 'shrink' | 'replay'
  /** Runs made so far. */
  readonly schedules: number
  readonly classes: number
  /** Alternatives known and not yet run; grows while the search finds more. */
  readonly open: number
  /** Preemptions that the search allows at present. */
  readonly bound?: number
  readonly budget: { readonly schedules: number; readonly ms: number }
  readonly milliseconds: number
}
