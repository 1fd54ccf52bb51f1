process SWSEARCH_SEARCH {
    tag "${meta.id}"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container "${ workflow.containerEngine in ['singularity', 'apptainer'] && !task.ext.singularity_pull_docker_container ?
        'https://depot.galaxyproject.org/singularity/swsearch:0.1.0--0':
        'quay.io/biocontainers/swsearch:0.1.0--0' }"

    input:
    tuple val(meta), path(queries)
    tuple val(meta2), path(subjects)
    val out_ext

    output:
    tuple val(meta), path("${prefix}.${out_ext}"), emit: hits
    tuple val("${task.process}"), val('swsearch'), eval("swsearch --version | sed 's/swsearch //'"), topic: versions, emit: versions_swsearch

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    swsearch search \\
        ${args} \\
        --threads ${task.cpus} \\
        --progress none \\
        --output ${prefix}.${out_ext} \\
        ${queries} \\
        ${subjects}
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.${out_ext}
    """
}
