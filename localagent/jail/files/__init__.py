"""What a jail sees of files: binds, mount points, its workspace, what is carried in and out."""
