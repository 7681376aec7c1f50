import { existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'
import { githubSlug } from '../../scripts/docs/github-slug.ts'
import { writeLlmsFiles } from '../site/llms.ts'
import { clientTabs, siteLinks } from '../site/markdown.ts'
import { addressOf, notPages, rewrites } from '../site/pages.ts'
import { repository } from '../site/repository.ts'
import { searchOptions, tokenize } from '../site/search.ts'
import { sequenceDiagram } from '../site/sequence-diagram.ts'
import { decisionRecords, sidebarOf } from '../site/sidebar.ts'

const website = fileURLToPath(new URL('..', import.meta.url))
const root = join(website, '..')
const sidebar = sidebarOf(readFileSync(join(root, 'docs/README.md'), 'utf8'))
const decisions = readFileSync(join(root, 'docs/decisions/README.md'), 'utf8')
/** Written by `npm run docs:api`, which `docs:build` does first. */
const api = join(website, 'generated/sidebar.json')

const title = 'Holdfast'
const description =
  'Race-free check-then-write for TypeScript on PostgreSQL, in the transaction and the client you already have'
/** Where the site is published, `https://owner.github.io/repository/`; pictures of links need a whole address. */
const origin = process.env['SITE_ORIGIN'] ?? ''
const base = process.env['SITE_BASE'] ?? '/'

interface Item {
  readonly text: string
  readonly link: string
}

function apiPages(): Item[] {
  return existsSync(api) ? (JSON.parse(readFileSync(api, 'utf8')) as Item[]) : []
}

function pageGroups(): { text: string; items: Item[] }[] {
  return sidebar.map(({ text, items }) => ({
    text,
    items: text === 'Reference' ? [...items, { text: 'API', link: '/api/' }] : [...items],
  }))
}

/** The build that renders looks for Vue beside the pages, where nothing is installed: it is to take the one of the site. */
const vueForPages = {
  name: 'vue-for-pages',
  enforce: 'pre' as const,
  resolveId(id: string, _importer: string | undefined, options: { ssr?: boolean }) {
    const isVue = id === 'vue' || id === 'vue/server-renderer'
    return isVue && options.ssr === true ? { id, external: true } : null
  },
}

export default defineConfig({
  title,
  description,
  lang: 'en',
  base,
  cleanUrls: true,
  srcDir: root,
  srcExclude: [...notPages],
  rewrites,
  cacheDir: join(website, '.vitepress/cache'),
  outDir: join(website, 'dist'),
  lastUpdated: false,
  metaChunk: true,
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}logo.svg` }],
    ['meta', { property: 'og:type', content: 'website' }],
    ['meta', { property: 'og:site_name', content: title }],
    ['meta', { property: 'og:image', content: `${origin}${base}preview.png` }],
    ['meta', { property: 'og:image:width', content: '1200' }],
    ['meta', { property: 'og:image:height', content: '630' }],
    ['meta', { name: 'twitter:card', content: 'summary_large_image' }],
  ],
  transformHead: ({ pageData }) => [
    ['meta', { property: 'og:title', content: pageData.title || title }],
    ['meta', { property: 'og:description', content: pageData.description || description }],
  ],
  transformPageData: ({ filePath, frontmatter }) => {
    // The reference of the API is made of comments in the sources; each entry there leads to its line.
    if (filePath.startsWith('website/generated/')) {
      return { frontmatter: { ...frontmatter, editLink: false } }
    }
    const page = sidebar.flatMap(({ items }) => items).find(({ path }) => path === filePath)
    return page === undefined ? {} : { description: page.description.replaceAll('`', '') }
  },
  buildEnd: ({ outDir }) =>
    writeLlmsFiles({ root, outDir, base, sidebar: [...sidebar, decisionRecords(decisions)] }),
  markdown: {
    // Those without it have less contrast than small text needs.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: githubSlug },
    toc: { slugify: githubSlug },
    headers: { slugify: githubSlug },
    config: (md) => {
      md.use(siteLinks, {
        sourceOf: (env: { realPath?: string; path?: string }) =>
          relative(root, env.realPath ?? env.path ?? root).replaceAll('\\', '/'),
        repository,
      })
      md.use(clientTabs)
      const { fence } = md.renderer.rules
      md.renderer.rules.fence = (tokens, at, ...rest) => {
        const token = tokens[at]
        if (token?.info === 'mermaid') {
          const drawn = sequenceDiagram(token.content)
          if (drawn !== undefined) return drawn
          token.info = 'text'
        }
        return fence?.(tokens, at, ...rest) ?? ''
      }
    },
  },
  themeConfig: {
    logo: '/logo.svg',
    nav: [
      { text: 'Start', link: addressOf('docs/README.md'), activeMatch: '^/docs/$' },
      {
        text: 'Recipes',
        link: addressOf('docs/recipes/README.md'),
        activeMatch: '^/docs/recipes/',
      },
      { text: 'Errors', link: addressOf('docs/errors.md') },
      {
        text: 'Race explorer',
        link: addressOf('docs/race/five-minutes.md'),
        activeMatch: '^/docs/race/',
      },
    ],
    // Groups that fold are buttons in buttons in this theme, which screen readers cannot tell apart.
    sidebar: { '/api/': [{ text: 'API', items: apiPages() }], '/': pageGroups() },
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: {
      pattern: `${repository}/edit/main/:path`,
      text: 'Edit this page',
    },
    search: {
      provider: 'local',
      options: {
        detailedView: false,
        miniSearch: { options: { tokenize }, searchOptions },
      },
    },
    notFound: {
      title: 'There is no such page',
      quote: 'Search for an error code or a symptom, or start at the index of the docs.',
      linkLabel: 'Go to the landing page',
      linkText: 'Landing page',
    },
    footer: { message: 'MIT licence' },
  },
  vite: {
    publicDir: join(website, 'public'),
    plugins: [vueForPages],
    build: { chunkSizeWarningLimit: 4_000 },
  },
})
