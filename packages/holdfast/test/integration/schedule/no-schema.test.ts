import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { freshName } from './schedule-room.ts'
import { pgFixture } from '../../support/pg-fixture.ts'

const fixture = pgFixture()

test('a schedule that cannot run, because the schema is missing, says so once', async () => {
  const hf = fixture.create({ schedule: { schema: 'nowhere' } } as never)
  const name = freshName()
  const warnings: string[] = []
  const hear = ({ message }: Error): void => {
    if (message.includes(name)) warnings.push(message)
  }
  process.on('warning', hear)
  onTestFinished(() => void process.off('warning', hear))
  const running = hf
    .schedule({ name, every: '7 days', guarantee: 'transactional', handler: async () => undefined })
    .start()
  const [warning] = (await once(process, 'warning')) as [Error & { code: string }]
  expect(warning.code).toBe('HOLDFAST_SCHEDULE_TROUBLE')
  expect(warning.message).toContain('SCHEMA_MISSING')
  expect(await running.stop()).toEqual({ left: 0 })
  expect(warnings).toHaveLength(1)
})
