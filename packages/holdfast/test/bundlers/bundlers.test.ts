/** The packed library through bundlers of others: each bundle installs, locks and books on a real server. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  firstHour,
  firstHourMain,
  installedProject,
  type PackedProject,
} from '../support/packed-project.ts'
import { everything, onEmptyDatabase } from './on-empty-database.ts'

let project: PackedProject

beforeAll(async () => {
  project = await installedProject([
    'pg@8',
    'rollup@4',
    '@rollup/plugin-node-resolve@16',
    '@rollup/plugin-commonjs@29',
    'webpack@5',
    'webpack-cli@6',
    'rolldown@1',
    'vite@8',
    '@vercel/ncc@0.38',
  ])
  await project.write({ 'first-hour.mjs': firstHour, 'main.mjs': firstHourMain })
}, 600_000)

afterAll(async () => {
  await project[Symbol.asyncDispose]()
})

test.each(['es', 'cjs'])('rollup to %s', { timeout: 300_000 }, async (format) => {
  const plugins = ['-p', '@rollup/plugin-node-resolve={preferBuiltins:true}', '-p', 'commonjs']
  const out = `rollup.${format === 'es' ? 'mjs' : 'cjs'}`
  const external = ['--external', 'pg', '--failAfterWarnings']
  const args = ['rollup', 'main.mjs', '-f', format, '-o', out, ...plugins, ...external]
  await project.run('npx', args)
  expect(await onEmptyDatabase(project, 'node', [out])).toEqual(everything)
})

test.each(['production', 'development'])('webpack, %s', { timeout: 300_000 }, async (mode) => {
  await project.write({
    'webpack.config.cjs': `module.exports = {
      target: 'node', entry: './main.mjs', externals: { pg: 'commonjs pg' },
      output: { path: __dirname, filename: 'webpack.cjs' }, ignoreWarnings: [],
    }`,
  })
  const said = await project.run('npx', ['webpack', '--mode', mode])
  expect(said).not.toMatch(/WARNING|ERROR/)
  expect(await onEmptyDatabase(project, 'node', ['webpack.cjs'])).toEqual(everything)
})

test.each(['esm', 'cjs'])('rolldown to %s', { timeout: 300_000 }, async (format) => {
  const out = `rolldown.${format === 'esm' ? 'mjs' : 'cjs'}`
  const how = ['--platform', 'node', '--external', 'pg', '-f', format, '-o', out]
  await project.run('npx', ['rolldown', 'main.mjs', ...how])
  expect(await onEmptyDatabase(project, 'node', [out])).toEqual(everything)
})

test('Vite, for a server, with everything inside', { timeout: 300_000 }, async () => {
  await project.write({
    'vite.config.mjs': `export default {
      build: { ssr: 'main.mjs', outDir: 'vite-out' },
      ssr: { noExternal: true, external: ['pg'] },
    }`,
  })
  await project.run('npx', ['vite', 'build'])
  expect(await onEmptyDatabase(project, 'node', ['vite-out/main.mjs'])).toEqual(everything)
})

test('ncc', { timeout: 300_000 }, async () => {
  await project.run('npx', ['ncc', 'build', 'main.mjs', '-o', 'ncc-out', '-e', 'pg'])
  const out = await project.run('ls', ['ncc-out'])
  const [name = ''] = /index\.\w+/.exec(out) ?? []
  expect(await onEmptyDatabase(project, 'node', [`ncc-out/${name}`])).toEqual(everything)
})
