import { randomUUID } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import pg from 'pg'
import { ledgerOn } from './ledger/open-ledger.ts'
const [mode = 'hot', seconds = '5', callers = '512'] = process.argv.slice(2)
const pool = new pg.Pool({
  connectionString: process.env.HFURL ?? 'postgres://postgres@127.0.0.1:5432/hfp',
  max: 16,
})
const { quota, count } = ledgerOn(pool, { lanes: Number(process.env.LANES ?? 2) })
const key = mode === 'hot' ? () => 'key-0' : () => `key-${Math.floor(Math.random() * 100000)}`
let done = 0
let stop = false
const caller = async () => {
  while (!stop) {
    await quota.consume(key(), 1, { operationId: randomUUID() })
    done++
  }
}
const pids = async () =>
  (
    await pool.query(
      'select pid from pg_stat_activity where datname=current_database() and backend_type=$1',
      ['client backend'],
    )
  ).rows.map((r) => r.pid as number)
const cpu = (ids: number[]) =>
  ids.reduce((t, p) => {
    try {
      const f = readFileSync(`/proc/${p}/stat`, 'utf8').split(') ')[1].split(' ')
      return t + Number(f[11]) + Number(f[12])
    } catch {
      return t
    }
  }, 0) * 10
const all = Array.from({ length: Number(callers) }, caller)
await new Promise((r) => setTimeout(r, 1500))
const ids = await pids()
const stat = () =>
  readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/ +/).slice(1).map(Number)
const k0 = stat()
const d0 = done,
  c0 = count.calls,
  n0 = process.cpuUsage(),
  s0 = cpu(ids),
  t0 = performance.now()
await new Promise((r) => setTimeout(r, Number(seconds) * 1000))
const t = (performance.now() - t0) / 1000
const ops = done - d0,
  n = process.cpuUsage(n0)
const s = cpu(ids) - s0
console.log(
  `${mode}: ${(ops / t).toFixed(0)} ops/s  batch ${(ops / (count.calls - c0)).toFixed(0)}  node ${((n.user + n.system) / ops).toFixed(1)} us/op (${((n.user + n.system) / 10000 / t).toFixed(0)}%)  server ${((s * 1000) / ops).toFixed(1)} us/op (${(s / 10 / t).toFixed(0)}%)`,
)
const k = stat().map((v, i) => v - k0[i])
const sum = k.reduce((a, b) => a + b, 0)
console.log(
  `  machine: user ${(((k[0] + k[1]) / sum) * 200).toFixed(0)}% sys ${((k[2] / sum) * 200).toFixed(0)}% idle ${((k[3] / sum) * 200).toFixed(0)}% iowait ${((k[4] / sum) * 200).toFixed(0)}% steal ${((k[7] / sum) * 200).toFixed(0)}% of 200`,
)
stop = true
await Promise.all(all)
await pool.end()
