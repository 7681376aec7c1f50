import { CounterFamily, DurationFamily, type MetricFamily } from './metric-family.ts'

const counter = (name: string, help: string, ...labels: readonly string[]): CounterFamily =>
  new CounterFamily(name, help, labels)
const duration = (name: string, help: string, ...labels: readonly string[]): DurationFamily =>
  new DurationFamily(name, help, labels)

/** Everything that is measured from events; docs/metrics.md has the same list with what to do. */
export class MetricSet {
  readonly lockAcquisitions: CounterFamily = counter(
    'holdfast_lock_acquisitions_total',
    'Requests for named locks, by how they ended.',
    'lock',
    'outcome',
  )
  readonly lockWait: DurationFamily = duration(
    'holdfast_lock_wait_seconds',
    'From asking for a named lock to getting it, or to the timeout; a round trip is in it.',
    'lock',
  )
  readonly lockHold: DurationFamily = duration(
    'holdfast_lock_hold_seconds',
    'How long guards held their named locks.',
    'lock',
  )
  readonly lockHeldLong: CounterFamily = counter(
    'holdfast_lock_held_long_total',
    'Named locks that were held longer than the watch allows.',
    'lock',
    'level',
  )
  readonly lockOrder: CounterFamily = counter(
    'holdfast_lock_order_faults_total',
    'Named locks taken in an order that can deadlock.',
    'lock',
    'fault',
  )
  readonly rows: CounterFamily = counter(
    'holdfast_row_locks_total',
    'Requests for locks of rows and tables, by how they ended.',
    'table',
    'outcome',
  )
  readonly rowWait: DurationFamily = duration(
    'holdfast_row_lock_wait_seconds',
    'From asking for locks of rows or a table to the answer.',
    'table',
  )
  readonly rowConflicts: CounterFamily = counter(
    'holdfast_row_version_conflicts_total',
    'Changes that found another version of the row than was read.',
    'table',
  )
  readonly transactions: CounterFamily = counter(
    'holdfast_transactions_total',
    'Transactions that Holdfast opened, by how they ended.',
    'room',
    'outcome',
  )
  readonly transactionDuration: DurationFamily = duration(
    'holdfast_transaction_duration_seconds',
    'From the call to the end, all attempts and pauses included.',
    'room',
  )
  readonly transactionOpen: DurationFamily = duration(
    'holdfast_transaction_open_seconds',
    'Until the last attempt had a connection and its transaction.',
    'room',
  )
  readonly retries: CounterFamily = counter(
    'holdfast_transaction_retries_total',
    'Attempts that were made again, by why.',
    'reason',
  )
  readonly ledgerOperations: CounterFamily = counter(
    'holdfast_ledger_operations_total',
    'Operations of the ledger, by what became of them.',
    'book',
    'kind',
    'outcome',
    'reason',
  )
  readonly ledgerOperationDuration: DurationFamily = duration(
    'holdfast_ledger_operation_duration_seconds',
    'From the call of an operation to its answer.',
    'book',
  )
  readonly ledgerStatementDuration: DurationFamily = duration(
    'holdfast_ledger_statement_duration_seconds',
    'Of the statements that carry operations; many travel in one.',
  )
  readonly sweeps: CounterFamily = counter(
    'holdfast_ledger_sweeps_total',
    'Looks of sweepers for what is due.',
    'outcome',
  )
  readonly swept: CounterFamily = counter(
    'holdfast_ledger_swept_movements_total',
    'Movements that sweepers booked: holds that expired, grants that began or lapsed.',
  )
  readonly auditProblems: CounterFamily = new CounterFamily(
    'holdfast_ledger_audit_problems',
    'Problems that the last audit in this process found.',
    [],
    'gauge',
  )
  readonly quotaDenied: CounterFamily = counter(
    'holdfast_quota_denied_here_total',
    'Refusals that were repeated without asking the database.',
    'book',
  )
  readonly claimed: CounterFamily = counter(
    'holdfast_claims_claimed_total',
    'Rows that were claimed.',
    'table',
  )
  readonly claimsFinished: CounterFamily = counter(
    'holdfast_claims_finished_total',
    'Claims that were completed, failed or given back.',
    'table',
    'verb',
  )
  readonly claimsDead: CounterFamily = counter(
    'holdfast_claims_dead_total',
    'Rows that had their last attempt.',
    'table',
  )
  readonly claimsLost: CounterFamily = counter(
    'holdfast_claims_lost_total',
    'Claims whose lease was over before the work.',
    'table',
  )
  readonly claimsRecovered: CounterFamily = counter(
    'holdfast_claims_recovered_total',
    'Rows that were given back because their lease was over.',
    'table',
  )
  readonly claimHandler: DurationFamily = duration(
    'holdfast_claims_handler_duration_seconds',
    'How long handlers of claims ran.',
    'table',
    'outcome',
  )
  readonly claimsTrouble: CounterFamily = counter(
    'holdfast_claims_trouble_total',
    'What went wrong in workers.',
    'table',
    'during',
  )
  readonly leases: CounterFamily = counter(
    'holdfast_lease_events_total',
    'What happened to leases.',
    'lease',
    'event',
  )
  readonly leaseWait: DurationFamily = duration(
    'holdfast_lease_wait_seconds',
    'From asking for a lease to getting it.',
    'lease',
  )
  readonly leading: CounterFamily = new CounterFamily(
    'holdfast_leader',
    '1 while this process leads.',
    ['name'],
    'gauge',
  )
  readonly ticks: CounterFamily = counter(
    'holdfast_schedule_ticks_total',
    'Ticks of schedules that ended in this process, by how.',
    'schedule',
    'outcome',
  )
  readonly tickDuration: DurationFamily = duration(
    'holdfast_schedule_tick_duration_seconds',
    'From taking a tick to writing its end down.',
    'schedule',
  )
  readonly tickLate: DurationFamily = duration(
    'holdfast_schedule_tick_late_seconds',
    'How late handlers of ticks began.',
    'schedule',
  )
  readonly scheduleTrouble: CounterFamily = counter(
    'holdfast_schedule_trouble_total',
    'How often a schedule could not ask the database.',
    'schedule',
  )
  readonly once: CounterFamily = counter(
    'holdfast_once_total',
    'Calls of once, by what became of them.',
    'outcome',
  )
  readonly onceDuration: DurationFamily = duration(
    'holdfast_once_duration_seconds',
    'How long calls of once took.',
    'outcome',
  )
  readonly errors: CounterFamily = counter(
    'holdfast_errors_total',
    'Errors of Holdfast that were made, whether caught or not.',
    'code',
  )
  readonly observeTrouble: CounterFamily = counter(
    'holdfast_observe_trouble_total',
    'How often a recorder could not write, or the server could not be looked at.',
    'during',
  )

  /** In the order they are shown in. */
  families(): readonly MetricFamily[] {
    return Object.values(this) as readonly MetricFamily[]
  }
}
