import { defineConfig } from 'vitest/config'
export default defineConfig({ root: '/work/main', test: { testTimeout: 30000, hookTimeout: 120000, retry: 0, projects: [ { extends: true, test: { name: 'pooled', include: ['packages/holdfast/test/conformance/**/*.test.ts'], globalSetup: 'packages/holdfast/test/support/shared-servers.ts', provide: { throughPooler: true } } } ] } })
