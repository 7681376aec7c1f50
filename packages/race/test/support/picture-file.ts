import type { Report } from '../../src/core/model.ts'
import { htmlReport } from '../../src/report/page/html-report.ts'
import { colours, pictureStyles } from '../../src/report/page/styles.ts'

/** The picture of a report's page as a file of its own, for the documentation. */
export function pictureFile(report: Report): string {
  const [, box = '', rest = ''] =
    /<svg class="picture large" viewBox="([^"]+)"([\s\S]*?<\/svg>)/.exec(htmlReport(report)) ?? []
  const [, , width = '0', height = '0'] = box.split(' ')
  // Links lead nowhere in a picture.
  const drawn = rest.replaceAll(/<a ([^>]*) href="[^"]*"/g, '<g $1').replaceAll('</a>', '</g>')
  const ground = `<style>${colours}${pictureStyles}</style>\n<rect class="card" fill="var(--card)" width="${width}" height="${height}" rx="12"/>`
  return `<svg xmlns="http://www.w3.org/2000/svg" class="picture large" viewBox="${box}" width="${width}" height="${height}"${drawn.replace('>', `>\n${ground}`)}\n`
}
